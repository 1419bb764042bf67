// Converts the operations into an OpenAPI 3.1 document. The schemas in it are the ones that requests are validated
// against.
import type { TSchema } from 'typebox';
import { AgentKey, ChangeAgentKey, CreateAgentKey, RotateAgentKey } from './agent-keys.ts';
import { Application, CreateApplication, RenameApplication } from './applications.ts';
import { Certificate } from './certificates.ts';
import { ErrorBody, Issue, Warning } from './common.ts';
import { catalogueEntry, type ErrorCode } from './errors.ts';
import { SessionEvent } from './events.ts';
import { Extension } from './extensions.ts';
import { Host, HostSample } from './host.ts';
import { BrowserLimits, Limits, ReplaceLimits } from './limits.ts';
import { OAuthError } from './oauth.ts';
import { type Operation, type ResponseSpec, TAGS, type UploadSpec } from './operation.ts';
import {
  errorsOf,
  isRepeatable,
  OPERATION_IDS,
  type OperationId,
  operation,
  optionalHeadersOf,
  pathsOf,
} from './operations.ts';
import {
  BrowserSettings,
  BrowserVersion,
  CreateSession,
  Project,
  ProjectUsage,
  Session,
  UpdateSession,
  Viewport,
} from './sessions.ts';
import { CreateToken, Token } from './tokens.ts';
import { ApplicationUsage } from './usage.ts';

type JsonValue = unknown;
type JsonMap = Record<string, JsonValue>;

/** Schemas with a name in the document. All others are written inline. */
export const NAMED_SCHEMAS: Readonly<Record<string, TSchema>> = {
  Session,
  CreateSession,
  UpdateSession,
  SessionEvent,
  BrowserSettings,
  Viewport,
  BrowserVersion,
  Certificate,
  Extension,
  Warning,
  Issue,
  Error: ErrorBody,
  OAuthError,
  Application,
  CreateApplication,
  RenameApplication,
  ApplicationUsage,
  Host,
  HostSample,
  Limits,
  BrowserLimits,
  ReplaceLimits,
  AgentKey,
  CreateAgentKey,
  ChangeAgentKey,
  RotateAgentKey,
  Token,
  CreateToken,
  Project,
  ProjectUsage,
};

const SCHEMA_NAMES: ReadonlyMap<unknown, string> = new Map(
  Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [schema, name]),
);

const SECURITY: Readonly<Record<Operation['credential'], JsonValue>> = {
  public: [],
  agentKey: [{ agentKey: [] }, { agentKeyHeader: [] }],
  account: [{ accessToken: [] }, { signInCookie: [] }],
  human: [{ signInCookie: [] }],
  deviceCode: [{ deviceCode: [] }],
  consumer: [{ consumerSession: [] }, { consumerCookie: [] }],
  agentKeyOrAccount: [{ agentKey: [] }, { agentKeyHeader: [] }, { accessToken: [] }, { signInCookie: [] }],
  handoffReader: [
    ...[{ agentKey: [] }, { agentKeyHeader: [] }, { accessToken: [] }, { signInCookie: [] }],
    ...[{ leaseToken: [] }, { claimSecret: [] }],
  ],
  handoffClaimer: [{ signInCookie: [] }, { claimSecret: [] }],
  handoffLease: [{ leaseToken: [] }],
  connect: [{ signingKey: [] }, { agentKey: [] }, { agentKeyHeader: [] }],
};

const header = (description: string, options: JsonMap = {}): JsonMap => ({
  description,
  ...options,
  schema: { type: 'string' },
});

/** Content type of responses whose type depends on the file. */
const ANY_TYPE = '*/*';

/** Headers that many responses have. A required header is present on every response that lists it. */
const COMMON_HEADERS = {
  'x-request-id': header('Id of the request. Include it when you report a problem.', { required: true }),
  'x-should-retry': header('Whether the same request may be sent again.', { required: true }),
  'www-authenticate': header('`Bearer`. For a step-up, with `error`, `acr_values` and `max_age` (RFC 9470).', {
    required: true,
  }),
  'content-range': header('`bytes */SIZE`.', { required: true }),
  upgrade: header('`websocket`.', { required: true }),
  'retry-after': header('Seconds to wait before sending the request again.'),
  'x-ratelimit-limit': header('The limit that was reached.'),
  'x-ratelimit-remaining': header('How many more requests the limit allows.'),
  'x-ratelimit-reset': header('Seconds until the limit allows more.'),
} as const satisfies Readonly<Record<string, JsonMap>>;

const commonHeaders = (...names: ReadonlyArray<keyof typeof COMMON_HEADERS>): JsonMap =>
  Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]));

const REQUEST_ID_HEADER = commonHeaders('x-request-id');

export function openApiDocument(version = '0.1.0'): JsonMap {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version,
      summary: 'Cloud browser sessions for software agents, on your own machines.',
      description:
        'All errors have the same body and a stable `code`. Times are ISO 8601 in UTC. Ids are UUIDs that sort by creation time. Values of the wrong type are refused, never converted. Unknown body fields of sessions and contexts are listed in `warnings`, or refused with `Prefer: handling=strict`; all other operations refuse unknown fields. If the response to a write is lost, send the request again only with the same `Idempotency-Key`; without one, first check whether the write took effect.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: paths(),
    components: {
      securitySchemes: {
        agentKey: { type: 'http', scheme: 'bearer', description: 'An agent key, `bak_…`.' },
        agentKeyHeader: { type: 'apiKey', in: 'header', name: 'X-BB-API-Key', description: 'The same agent key.' },
        accessToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'A personal access token, `bpt_…`, or a developer token, `bdt_…`.',
        },
        signInCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-berth',
          description:
            'Set for a person who signs in. Named `berth` if the service is reached over plain http. Writes need the `Origin` of this service and a JSON body.',
        },
        deviceCode: { type: 'http', scheme: 'bearer', description: 'A device code, `bdc_…`.' },
        consumerSession: { type: 'http', scheme: 'bearer', description: 'The access token of a consumer, `bcs_…`.' },
        consumerCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-berth-consumer-APPLICATION',
          description:
            'Set for a consumer who signs in on a page of this service. The name ends with the id of the application without dashes; over plain http it has no `__Host-` prefix.',
        },
        leaseToken: { type: 'http', scheme: 'bearer', description: 'The lease token of a hand-off, `bhl_…`.' },
        claimSecret: {
          type: 'http',
          scheme: 'bearer',
          description:
            'The secret of the claim link of a hand-off, `bhc_…`. It works in the first browser that sends it.',
        },
        signingKey: { type: 'apiKey', in: 'query', name: 'signingKey', description: "The session's signing key." },
      },
      headers: COMMON_HEADERS,
      schemas: Object.fromEntries(
        Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [name, toPlainJson(schema, name)]),
      ),
    },
  };
}

function paths(): JsonMap {
  const pathItems: Record<string, JsonMap> = {};
  for (const id of OPERATION_IDS)
    for (const { path, mount } of pathsOf(id, true)) {
      if (path.startsWith('/v1/browsers/v1/')) continue; // The compatibility mount has the same operations, so it is not described again.
      pathItems[path] ??= {};
      pathItems[path][operation(id).method.toLowerCase()] = describeOperation(id, mount);
    }
  return pathItems;
}

function describeOperation(id: OperationId, mount: 'native' | 'compat'): JsonMap {
  const describedOperation = operation(id);
  const parameters = [
    ...parametersOf('path', describedOperation.params),
    ...parametersOf('query', describedOperation.query),
    ...parametersOf('header', describedOperation.headers),
    ...parametersOf('optional header', optionalHeadersOf(id)),
  ].filter(parameter => !(describedOperation.credential === 'connect' && parameter.name === 'signingKey'));
  const isAlias = mount === 'compat' && describedOperation.mount === 'both';
  return {
    operationId: isAlias ? `${id}Compat` : id,
    tags: [isAlias ? 'Compatibility' : describedOperation.tag],
    summary: describedOperation.summary,
    description: describedOperation.scopes
      ? `${describedOperation.description}\n\nScope: ${describedOperation.scopes.join(' or ')}.`
      : describedOperation.description,
    security: SECURITY[describedOperation.credential],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(describedOperation.body ? { requestBody: requestBody(describedOperation.body, describedOperation) } : {}),
    ...(describedOperation.upload ? { requestBody: fileBody(describedOperation.upload) } : {}),
    responses: { ...responsesOf(id), ...errorResponses(id) },
    ...(describedOperation.isWrite ? { 'x-write': true } : {}),
  };
}

function requestBody(body: TSchema, { bodyExample: example, oauth }: Operation): JsonMap {
  const content = { schema: toPlainJson(body), ...(example === undefined ? {} : { example }) };
  return {
    required: requiredNames(body).length > 0,
    content: { 'application/json': content, ...(oauth ? { 'application/x-www-form-urlencoded': content } : {}) },
  };
}

const fileBody = ({ description }: UploadSpec): JsonMap => ({
  required: true,
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['file'],
        properties: { file: { type: 'string', contentMediaType: 'application/octet-stream', description } },
      },
    },
  },
});

type ParameterLocation = 'path' | 'query' | 'header' | 'optional header';

function parametersOf(location: ParameterLocation, schema: TSchema | undefined): JsonMap[] {
  if (!schema) return [];
  const requiredProperties = new Set(requiredNames(schema));
  return Object.entries(propertiesOf(schema)).map(([name, property]) => {
    const { description, ...rest } = toPlainJson(property) as JsonMap;
    return {
      name: location.endsWith('header') ? headerName(name) : name,
      in: location === 'optional header' ? 'header' : location,
      required: location === 'path' || name === 'if-match' || requiredProperties.has(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

/** Converts a header name to the usual capitalization: `if-match` becomes `If-Match`. */
export const headerName = (name: string): string => name.replace(/(^|-)[a-z]/g, letter => letter.toUpperCase());

function responsesOf(id: OperationId): JsonMap {
  return Object.fromEntries(
    Object.entries(operation(id).responses).map(([status, spec]) => [
      status,
      {
        description: spec.description,
        headers: {
          ...REQUEST_ID_HEADER,
          ...describedHeaders(spec.headers ?? {}),
          ...describedHeaders(requestHandlingHeaders(id)),
        },
        ...content(id, spec),
      },
    ]),
  );
}

function content(
  id: OperationId,
  { schema, contentType, mayBeFile, alternativeTypes = {}, streamDescription }: ResponseSpec,
): JsonMap {
  const textContent = (type: string): JsonMap => ({ [type]: { schema: { type: 'string' } } });
  const mediaTypes: JsonMap = {
    ...(contentType ? textContent(contentType) : {}),
    ...(schema ? { 'application/json': { schema: withOptionalSecrets(id, schema) } } : {}),
    ...(streamDescription
      ? { 'text/event-stream': { schema: { type: 'string', description: streamDescription } } }
      : {}),
    ...Object.fromEntries(
      Object.entries(alternativeTypes).map(([type, other]) => [type, { schema: toPlainJson(other) }]),
    ),
    ...(mayBeFile ? textContent(ANY_TYPE) : {}),
  };
  return Object.keys(mediaTypes).length > 0 ? { content: mediaTypes } : {};
}

/** Returns the schema with secrets made optional, because a replayed response contains none. */
function withOptionalSecrets(id: OperationId, schema: TSchema): JsonValue {
  const secretNames = new Set(operation(id).secretFields ?? []);
  if (requiredNames(schema).every(name => !secretNames.has(name))) return toPlainJson(schema);
  return { ...Object(toPlainJson(schema)), required: requiredNames(schema).filter(name => !secretNames.has(name)) };
}

const REGISTERED_ORIGIN_HEADERS = {
  vary: '`Origin`, for a request from a page.',
  'access-control-allow-origin': 'The origin of the page, if the application has registered it.',
  'access-control-expose-headers': 'Headers that scripts of the page may read.',
} as const;

/** Returns descriptions of the response headers that depend on properties of the operation, such as `mayWait`. */
function requestHandlingHeaders(id: OperationId): Readonly<Record<string, string>> {
  const { mayWait, unknownFields, allowsRegisteredOrigins } = operation(id);
  return {
    ...(allowsRegisteredOrigins ? REGISTERED_ORIGIN_HEADERS : {}),
    ...(isRepeatable(id)
      ? { 'idempotency-replayed': '`true` if this is the response to the first request with the same key.' }
      : {}),
    ...(mayWait || unknownFields === 'warn'
      ? { 'preference-applied': 'The preferences of `Prefer` that were applied.' }
      : {}),
    ...(mayWait ? { 'x-berth-waited': 'With `Prefer: wait`, how long the create was queued, in milliseconds.' } : {}),
  };
}

const describedHeaders = (descriptions: Readonly<Record<string, string>>): JsonMap =>
  Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );

function failureSchema(id: OperationId, codes: readonly ErrorCode[]) {
  const { oauth, jsonRpcError } = operation(id);
  const apiError = {
    allOf: [
      { $ref: `#/components/schemas/${oauth ? 'OAuthError' : 'Error'}` },
      { properties: { code: { enum: codes } } },
    ],
  };
  return jsonRpcError ? { anyOf: [apiError, jsonRpcError] } : apiError;
}

/** Returns the error responses grouped by status, because OpenAPI has one entry for each status. */
function errorResponses(id: OperationId): JsonMap {
  const codesByStatus = Map.groupBy(errorsOf(id), code => catalogueEntry(code).status);
  return Object.fromEntries(
    [...codesByStatus].map(([status, statusErrorCodes]) => [
      status,
      {
        description: statusErrorCodes.map(code => `\`${code}\`: ${catalogueEntry(code).summary}`).join('\n\n'),
        headers: failureHeaders(id, status, statusErrorCodes),
        content: {
          'application/json': {
            schema: failureSchema(id, statusErrorCodes),
          },
        },
      },
    ]),
  );
}

function failureHeaders(id: OperationId, status: number, codes: readonly ErrorCode[]): JsonMap {
  const hasRetryAfter = codes.some(code => catalogueEntry(code).retryAfterSeconds !== undefined);
  return {
    ...REQUEST_ID_HEADER,
    ...describedHeaders(requestHandlingHeaders(id)),
    ...(operation(id).isWrite ? commonHeaders('x-should-retry') : {}),
    ...(status === 401 ? commonHeaders('www-authenticate') : {}),
    ...(status === 416 ? commonHeaders('content-range') : {}),
    ...(status === 426 ? commonHeaders('upgrade') : {}),
    ...(hasRetryAfter || status === 429 ? commonHeaders('retry-after') : {}),
    ...(status === 429 ? commonHeaders('x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset') : {}),
  };
}

// ---- schemas as plain JSON -----------------------------------------------------------------------------------------

export const propertiesOf = (schema: TSchema): Readonly<Record<string, TSchema>> =>
  'properties' in schema ? (schema.properties as Record<string, TSchema>) : {};

export const requiredNames = (schema: TSchema): readonly string[] =>
  'required' in schema ? (schema.required as string[]) : [];

/** Returns the schema as JSON. Named schemas are replaced by references, except the one named `inlineName`. */
function toPlainJson(value: unknown, inlineName?: string): JsonValue {
  if (Array.isArray(value)) return value.map(item => toPlainJson(item));
  if (typeof value !== 'object' || value === null) return value;
  const name = SCHEMA_NAMES.get(value);
  if (name && name !== inlineName) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlainJson(inner)]));
}
