// Examples for the API reference: values that match a schema, and the request for an operation as a curl command.
import type { TSchema } from 'typebox';
import type { Operation, Tag } from '../contract/operation.ts';
import type { OperationId } from '../contract/operations.ts';
import { shapeOf } from './api-shape.ts';

const SESSION_ID = '019ab2c4-7d10-7a0e-9a53-0f1c3a2f7d11';
const APPLICATION_ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const EXAMPLE_TIME = '2026-09-24T10:15:30.123Z';
const EXPIRY_TIME = '2026-09-24T11:15:30.123Z';

/** Values by the name of the field. They are the same in all examples. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  projectId: APPLICATION_ID,
  applicationId: APPLICATION_ID,
  billingAccountId: '0199f7c2-0001-7a0e-9a53-0f1c3a2f7d10',
  ownerId: '0199f7c2-0001-7a0e-9a53-0f1c3a2f7d10',
  status: 'RUNNING',
  region: 'local',
  keepAlive: true,
  userMetadata: { run: 'r-1842' },
  signingKey: 'k_…',
  seleniumRemoteUrl: 'https://browsers.example/v1/browsers/webdriver',
  connectUrl: `wss://browsers.example/v1/browsers/sessions/${SESSION_ID}/connect?signingKey=k_…`,
  webSocketDebuggerUrl: `wss://browsers.example/v1/browsers/sessions/${SESSION_ID}/connect?signingKey=k_…`,
  Browser: 'Chrome/156.0.0.0',
  'Protocol-Version': '1.3',
  slug: 'shop-agent',
  environment: 'development',
  role: 'owner',
  revision: 1,
  cidrAllow: [],
  warnings: [],
  proxyBytes: 0,
  browserMinutes: 412.5,
  defaultTimeout: 3600,
  concurrency: 10,
  expiresAt: EXPIRY_TIME,
  sessionId: SESSION_ID,
  version: '0.1.0',
  docs: '/docs',
  openapi: '/openapi.yaml',
};

/** Optional fields that are absent from most responses. */
const OMITTED_FIELDS = [
  'endedAt',
  'endReason',
  'contextId',
  'uploads',
  'revokedAt',
  'lastUsedAt',
  'lastUsedIp',
  'nextCursor',
  'detail',
  'details',
];

/** Like `SAMPLES`, for the operations of one tag. */
const SAMPLES_OF_TAG: Readonly<Partial<Record<Tag, Readonly<Record<string, unknown>>>>> = {
  Applications: { name: 'Shop agent', status: 'active' },
  'Agent keys': {
    name: 'nightly',
    prefix: 'bak_x7Qk',
    key: 'bak_x7Qk…',
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect'],
    status: 'active',
  },
  Tokens: {
    name: 'ci',
    prefix: 'bpt_x7Qk',
    token: 'bpt_x7Qk…',
    kind: 'personal',
    scopes: ['applications:read', 'keys:write'],
    status: 'active',
  },
  'Device authorization': {
    client_id: 'my-agent',
    device_code: 'bdc_x7Qk…',
    user_code: 'KQTM-7HXD',
    verification_uri: 'https://browsers.example/device',
    verification_uri_complete: 'https://browsers.example/device#KQTM-7HXD',
    expires_in: 600,
    expiresIn: 540,
    interval: 5,
    status: 'approved',
    name: 'Shop agent',
    deviceName: 'build-7',
    ip: '203.0.113.7',
    isYourNetwork: true,
    verified: false,
    userAgent: 'my-agent/1.4',
    scopes: ['keys:write'],
    access_token: 'bdt_x7Qk…',
    token_id: SESSION_ID,
    scope: 'keys:write',
    application_ids: [APPLICATION_ID],
  },
  Compatibility: { name: 'Shop agent', success: true, available: false },
  Service: { name: 'Berth', status: 'ok', checks: [{ name: 'database', ok: true }] },
};

/** Fields for connecting to a session, which only some responses contain. */
const CONNECT_FIELDS = ['connectUrl', 'seleniumRemoteUrl', 'signingKey'];
const CONNECT_FIELD_OPERATIONS: ReadonlySet<OperationId> = new Set(['createSession', 'readSession']);

/** Returns an example body for the operation's first response. Undefined if that response has no body. */
export function exampleResponseOf(id: OperationId, { tag, responses }: Operation): unknown {
  const schema = Object.values(responses)[0]?.schema;
  if (!schema) return undefined;
  const samples: Readonly<Record<string, unknown>> = {
    ...SAMPLES,
    ...SAMPLES_OF_TAG[tag],
    ...(id === 'updateSession' ? { status: 'COMPLETED' } : {}),
  };
  const omittedFields = [
    ...OMITTED_FIELDS,
    ...(tag === 'Sessions' && !CONNECT_FIELD_OPERATIONS.has(id) ? CONNECT_FIELDS : []),
    ...(tag === 'Sessions' && id !== 'createSession' && id !== 'readSession' ? ['warnings'] : []),
  ];
  return exampleOf(schema, '', { samples, omittedFields });
}

interface ExampleOptions {
  readonly samples: Readonly<Record<string, unknown>>;
  readonly omittedFields: readonly string[];
}

function exampleOf(schema: TSchema, name: string, options: ExampleOptions): unknown {
  if (Object.hasOwn(options.samples, name)) return options.samples[name];
  const { anyOf, properties, items, enum: enumValues, const: constValue, type, format } = shapeOf(schema);
  if (constValue !== undefined) return constValue;
  if (enumValues) return enumValues[0];
  if (anyOf?.[0]) return exampleOf(anyOf[0], name, options);
  if (items) return [exampleOf(items, '', options)];
  if (properties)
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([key]) => !options.omittedFields.includes(key))
        .map(([key, field]) => [key, exampleOf(field, key, options)]),
    );
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return 1;
  if (type === 'object') return {};
  if (format === 'uuid') return SESSION_ID;
  return format === 'date-time' ? EXAMPLE_TIME : name;
}

/** The address that is used in all documents. */
const BASE_URL = 'http://127.0.0.1:8080';
const ID_VARIABLES: Readonly<Record<string, string>> = { id: '$ID', appId: '$APP_ID', keyId: '$KEY_ID' };

export function curlCommandOf({ method, path, credential, body, bodyExample, headers, upload }: Operation): string {
  if (path.endsWith('/connect')) return '# Give the whole connectUrl to a CDP client\n"$CONNECT_URL"';
  const url = BASE_URL + path.replace(/\{(\w+)\}/g, (_, name: string) => ID_VARIABLES[name] ?? '$ID');
  const query = credential === 'connect' ? '?signingKey=$SIGNING_KEY' : '';
  const lines = [
    `curl${method === 'GET' ? '' : ` -X ${method}`} "${url}${query}"`,
    ...(credential === 'agentKey' || credential === 'agentKeyOrAccount' || credential === 'handoffReader'
      ? ['  -H "Authorization: Bearer $BERTH_KEY"']
      : []),
    ...(credential === 'account' ? ['  -H "Authorization: Bearer $BERTH_TOKEN"'] : []),
    ...(credential === 'human' ? ['  -H "Cookie: berth=$BERTH_COOKIE" -H "Origin: $BERTH_URL"'] : []),
    ...(credential === 'handoffLease' ? ['  -H "Authorization: Bearer $LEASE_TOKEN"'] : []),
    ...(credential === 'handoffClaimer' ? ['  -H "Authorization: Bearer $CLAIM_SECRET"'] : []),
    ...(credential === 'deviceCode' ? ['  -H "Authorization: Bearer $DEVICE_CODE"'] : []),
    ...(upload ? [`  -F "file=@${upload.example}"`] : []),
    ...(headers ? [`  -H 'If-Match: "1"'`] : []),
    ...(body && bodyExample !== undefined
      ? ['  -H "Content-Type: application/json"', `  -d '${JSON.stringify(bodyExample)}'`]
      : []),
  ];
  return lines.join(' \\\n');
}
