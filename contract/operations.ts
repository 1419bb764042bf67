// The table of operations. Validation, routing, OpenAPI and the reference page are derived from it; no other code lists
// routes.
import { type Static, type TSchema, Type } from 'typebox';
import { IdempotencyHeader, PreferHandlingHeader, PreferWaitHeader } from './common.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import type { Operation } from './operation.ts';
import { ACCOUNT_OPERATIONS } from './operations/account.ts';
import { ACTION_OPERATIONS } from './operations/actions.ts';
import { AGENT_KEY_OPERATIONS } from './operations/agent-keys.ts';
import { APPLICATION_OPERATIONS } from './operations/applications.ts';
import { AUDIT_OPERATIONS } from './operations/audit.ts';
import { CERTIFICATE_OPERATIONS } from './operations/certificates.ts';
import { COMPATIBILITY_OPERATIONS } from './operations/compatibility.ts';
import { CONFIG_OPERATIONS } from './operations/config.ts';
import { CONFIGURED_OPERATIONS } from './operations/configured-operations.ts';
import { CONNECT_OPERATIONS } from './operations/connect.ts';
import { CONSUMER_DATA_OPERATIONS } from './operations/consumer-data.ts';
import { CONSUMER_HANDOFF_OPERATIONS } from './operations/consumer-handoffs.ts';
import { CONSUMER_OPERATIONS } from './operations/consumers.ts';
import { CONTEXT_OPERATIONS } from './operations/contexts.ts';
import { CREDIT_OPERATIONS } from './operations/credits.ts';
import { DEVICE_OPERATIONS } from './operations/device.ts';
import { DOWNLOAD_OPERATIONS } from './operations/downloads.ts';
import { EVENT_OPERATIONS } from './operations/events.ts';
import { EXTENSION_OPERATIONS } from './operations/extensions.ts';
import { HANDOFF_OPERATIONS } from './operations/handoffs.ts';
import { HOST_OPERATIONS } from './operations/host.ts';
import { IDENTITY_OPERATIONS } from './operations/identity.ts';
import { INBOX_OPERATIONS } from './operations/inbox.ts';
import { INVITATION_OPERATIONS } from './operations/invitations.ts';
import { INVOCATION_OPERATIONS } from './operations/invocations.ts';
import { LIVE_OPERATIONS } from './operations/live.ts';
import { LOG_OPERATIONS } from './operations/logs.ts';
import { MAIL_OPERATIONS } from './operations/mails.ts';
import { MCP_OPERATIONS } from './operations/mcp.ts';
import { MEMBER_OPERATIONS } from './operations/members.ts';
import { RECORDING_OPERATIONS } from './operations/recordings.ts';
import { SERVICE_OPERATIONS } from './operations/service.ts';
import { SESSION_OPERATIONS } from './operations/sessions.ts';
import { SIGN_IN_OPERATIONS } from './operations/sign-in.ts';
import { SIGNING_KEY_OPERATIONS } from './operations/signing-keys.ts';
import { STORED_CREDENTIAL_OPERATIONS } from './operations/stored-credentials.ts';
import { TOKEN_OPERATIONS } from './operations/tokens.ts';
import { TOPUP_OPERATIONS } from './operations/topups.ts';
import { USAGE_OPERATIONS } from './operations/usage.ts';
import { WEBHOOK_OPERATIONS } from './operations/webhooks.ts';

export const OPERATIONS = {
  ...SESSION_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...LOG_OPERATIONS,
  ...RECORDING_OPERATIONS,
  ...CONNECT_OPERATIONS,
  ...DOWNLOAD_OPERATIONS,
  ...EXTENSION_OPERATIONS,
  ...CERTIFICATE_OPERATIONS,
  ...CONTEXT_OPERATIONS,
  ...LIVE_OPERATIONS,
  ...HANDOFF_OPERATIONS,
  ...MCP_OPERATIONS,
  ...INVOCATION_OPERATIONS,
  ...ACTION_OPERATIONS,
  ...CONFIGURED_OPERATIONS,
  ...STORED_CREDENTIAL_OPERATIONS,
  ...APPLICATION_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...CREDIT_OPERATIONS,
  ...TOPUP_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...MEMBER_OPERATIONS,
  ...INVITATION_OPERATIONS,
  ...IDENTITY_OPERATIONS,
  ...CONSUMER_OPERATIONS,
  ...CONSUMER_DATA_OPERATIONS,
  ...CONSUMER_HANDOFF_OPERATIONS,
  ...AGENT_KEY_OPERATIONS,
  ...SIGN_IN_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...INBOX_OPERATIONS,
  ...TOKEN_OPERATIONS,
  ...MAIL_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...DEVICE_OPERATIONS,
  ...COMPATIBILITY_OPERATIONS,
  ...CONFIG_OPERATIONS,
  ...HOST_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...SIGNING_KEY_OPERATIONS,
} as const satisfies Readonly<Record<string, Operation>>;

export type OperationId = keyof typeof OPERATIONS;

export const OPERATION_IDS = Object.keys(OPERATIONS) as readonly OperationId[];

export const operation = (id: OperationId): Operation => OPERATIONS[id];

type Part<
  Id extends OperationId,
  Name extends 'params' | 'query' | 'headers' | 'body',
> = (typeof OPERATIONS)[Id] extends { readonly [Key in Name]: infer Schema extends TSchema }
  ? Static<Schema>
  : undefined;

/** The parts of a validated request. */
export interface OperationInput<Id extends OperationId> {
  readonly params: Part<Id, 'params'>;
  readonly query: Part<Id, 'query'>;
  readonly headers: Part<Id, 'headers'>;
  readonly body: Part<Id, 'body'>;
}

/** Whether a request with the same `Idempotency-Key` gets the response to the first request. */
export function isRepeatable(id: OperationId): boolean {
  const { method, credential, hasOwnIdempotency } = operation(id);
  return !hasOwnIdempotency && method === 'POST' && isApiCredential(credential);
}

const isApiCredential = (credential: Operation['credential']): boolean =>
  credential === 'agentKey' || credential === 'account' || credential === 'agentKeyOrAccount';

const COOKIE_CREDENTIALS: ReadonlySet<Operation['credential']> = new Set<Operation['credential']>([
  ...(['account', 'human', 'consumer', 'agentKeyOrAccount', 'handoffReader', 'handoffClaimer'] as const),
]);

/** Optional request headers that follow from other properties of the operation. They are not in its `headers`. */
export function optionalHeadersOf(id: OperationId): TSchema {
  const { mayWait, unknownFields } = operation(id);
  return Type.Object({
    ...(isRepeatable(id) ? IdempotencyHeader : {}),
    ...(mayWait ? PreferWaitHeader : unknownFields === 'warn' ? PreferHandlingHeader : {}),
  });
}

/** Returns all error codes of an operation: its own, and those that follow from how it is called. */
export function errorsOf(id: OperationId): readonly ErrorCode[] {
  const { tag, method, mount, upload, params, body, query, headers, credential, scopes, errors } = operation(id);
  const codes = new Set<ErrorCode>(errors);
  if (isRepeatable(id)) codes.add('invalid_request').add('idempotency_conflict');
  if (tag !== 'Service' && mount !== 'compat') codes.add('invalid_query');
  if (body || query || headers || params) codes.add('invalid_request');
  if (operation(id).unknownFields === 'refuse') codes.add('unknown_field');
  if (upload || isRateLimited(id)) codes.add('rate_limited');
  // A body is parsed, and may be invalid, even if the operation does not take one.
  if (method !== 'GET') codes.add('invalid_request').add('payload_too_large').add('unsupported_media_type');
  if (credential !== 'public')
    codes.add('missing_credentials').add('invalid_credentials').add('address_not_allowed').add('database_unreachable');
  if (method !== 'GET' && COOKIE_CREDENTIALS.has(credential)) codes.add('cross_site_request');
  if (operation(id).allowsRegisteredOrigins) codes.add('origin_not_allowed');
  if (operation(id).stepUp) codes.add('insufficient_user_authentication');
  if (scopes || credential === 'connect') codes.add('permission_denied');
  const isForwarded =
    id in OWNER_SUBJECTS || PLACED_OPERATIONS.has(id) || id in BODY_SUBJECTS || credential === 'connect';
  if (isForwarded) codes.add('host_unreachable');
  codes.add('internal');
  return [...codes].sort((a, b) => ERRORS[a].status - ERRORS[b].status || a.localeCompare(b));
}

/**
 * Operations that are always handled by the host that has the session, the file or the call, even if another host
 * receives the request. The value is the kind of resource that the path names.
 */
export const OWNER_SUBJECTS: {
  readonly [Id in OperationId]?: 'session' | 'download' | 'link' | 'invocation' | 'handoff' | 'action';
} = {
  updateSession: 'session',
  uploadFile: 'session',
  listReplays: 'session',
  readReplay: 'session',
  readPicture: 'session',
  requestRecordings: 'session',
  listRecordings: 'session',
  discoverSession: 'session',
  debugSession: 'session',
  revokeDebug: 'session',
  listSessionLogs: 'session',
  archiveDownloads: 'session',
  endSession: 'session',
  listRecordingEvents: 'session',
  readDownload: 'download',
  deleteDownload: 'download',
  readLinkedFile: 'link',
  readInvocation: 'invocation',
  cancelInvocation: 'invocation',
  readHandoff: 'handoff',
  claimHandoff: 'handoff',
  renewHandoff: 'handoff',
  completeHandoff: 'handoff',
  cancelHandoff: 'handoff',
  executeAction: 'action',
};

/** Operations whose body may name a session or a hand-off. The host of that session or hand-off then handles them. */
export const BODY_SUBJECTS: { readonly [Id in OperationId]?: 'session' | 'handoff' } = {
  requestHandoff: 'session',
  invokeOperation: 'session',
  readConsumerHandoff: 'handoff',
  claimConsumerHandoff: 'handoff',
};

/** Operations that can start a browser. A host with a free slot handles them. */
export const PLACED_OPERATIONS: ReadonlySet<OperationId> = new Set([
  'createSession',
  'startSession',
  'callMcp',
  'invokeOperation',
  'executeAction',
]);

/** Whether a request counts against the rate limits of its credential. */
export function isRateLimited(id: OperationId): boolean {
  const { credential, isExemptFromRateLimits = false } = operation(id);
  return !isExemptFromRateLimits && (isApiCredential(credential) || COOKIE_CREDENTIALS.has(credential));
}

const NATIVE_PREFIX = '/v1/browsers/';
export const COMPAT_PREFIXES = ['/v1/', '/v1/browsers/v1/'] as const;

/** Returns all paths of an operation, the native path first. */
export function pathsOf(
  id: OperationId,
  includesCompat: boolean,
): ReadonlyArray<{ path: string; mount: 'native' | 'compat' }> {
  const { path, mount } = operation(id);
  const nativePaths = mount === 'compat' ? [] : [{ path, mount: 'native' as const }];
  if (mount === 'native' || !includesCompat) return nativePaths;
  const tail = path.slice(mount === 'compat' ? COMPAT_PREFIXES[0].length : NATIVE_PREFIX.length);
  return [...nativePaths, ...COMPAT_PREFIXES.map(prefix => ({ path: `${prefix}${tail}`, mount: 'compat' as const }))];
}
