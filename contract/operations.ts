// The table of operations. Validation, routing, OpenAPI and the reference page are made from it; nothing else lists routes.
import { type Static, type TSchema, Type } from 'typebox';
import {
  AgentKey,
  AgentKeyPage,
  AgentKeyParams,
  ChangeAgentKey,
  CreateAgentKey,
  IssuedAgentKey,
  RotateAgentKey,
} from './agent-keys.ts';
import {
  Application,
  ApplicationPage,
  ApplicationParams,
  CreateApplication,
  RenameApplication,
} from './applications.ts';
import { IdempotencyHeader, IfMatchHeader, PageQuery, PreferHandlingHeader, PreferWaitHeader } from './common.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { EventsQuery, SessionEventPage, SessionEventsQuery } from './events.ts';
import { Limits, ReplaceLimits } from './limits.ts';
import { Health, Readiness, Welcome } from './service.ts';
import {
  BrowserVersion,
  ConnectQuery,
  CreateSession,
  EndedSession,
  Project,
  ProjectParams,
  ProjectUsage,
  Session,
  SessionParams,
  SessionQuery,
  StartedSession,
  StartSession,
  UpdateSession,
} from './sessions.ts';
import { CreateToken, IssuedToken, Token, TokenPage, TokenParams } from './tokens.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `agentKey` bak_…; `account` bpt_…; `connect` the session's own signing key, or an agent key with browsers:connect. */
export type Credential = 'public' | 'agentKey' | 'account' | 'connect';

/** Native paths stand under /v1/browsers; `both` means also where official clients look, under /v1 and /v1/browsers/v1. */
export type Mount = 'native' | 'both' | 'compat';

export const TAGS = {
  Sessions: 'Create browsers, find them again, change and release them.',
  Connect: 'Drive a browser over CDP.',
  Applications: 'What owns keys, sessions and usage.',
  'Agent keys': 'Credentials of programs that use browsers.',
  Tokens: "Credentials of people's scripts for accounts and applications.",
  Compatibility: "Routes that exist for the field's official clients only.",
  Service: 'Health, metrics and descriptions.',
} as const;
export type Tag = keyof typeof TAGS;

export interface Answer {
  readonly description: string;
  readonly schema?: TSchema;
  /** JSON unless named. */
  readonly contentType?: string;
  /** What a caller gets who accepts server-sent events. */
  readonly asStream?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  readonly tag: Tag;
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly credential: Credential;
  /** One of these is enough. */
  readonly scopes?: readonly string[];
  readonly isWrite: boolean;
  readonly mount: Mount;
  /** Served with a slash at the end of the path too. */
  readonly alsoWithSlash?: boolean;
  /** What happens to body fields that the schema does not know. */
  readonly unknownFields?: 'warn' | 'ignore' | 'refuse';
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly bodyExample?: unknown;
  /** It may stand in line for room: `Prefer: wait=SECONDS`. */
  readonly mayWait?: boolean;
  /** Fields of the answer that are never kept for a repetition. */
  readonly secretFields?: readonly string[];
  readonly responses: Readonly<Record<number, Answer>>;
  readonly errors: readonly ErrorCode[];
}

const READ_APPLICATIONS = ['applications:read', 'applications:write', 'keys:write'] as const;
const ETAG = { ETag: 'The revision in quotes; send it as `If-Match` to change it.' } as const;
const ADMITTED = {
  'x-ratelimit-limit': 'The limit that a next create would meet first: of running sessions, or of creates a minute.',
  'x-ratelimit-remaining': 'How many more it allows now.',
  'x-ratelimit-reset': 'Seconds after which it allows more, or after which asking again makes sense.',
  'x-berth-waited': 'With `Prefer: wait`: the milliseconds that the create stood in line.',
} as const;

const STREAMED =
  'With `Accept: text/event-stream` they come as they happen, as server-sent events: `id`, `event` the type, `data` the event as JSON. A comment every 15 seconds shows that the stream lives. `Last-Event-ID` goes on behind an event, and wins over `after`.';

const EVENTS_ANSWER = {
  200: {
    description: 'A page of events.',
    schema: SessionEventPage,
    asStream: 'The events as they happen, without end.',
  },
} as const;

export const OPERATIONS = {
  // ---- sessions ----------------------------------------------------------------------------------------------------
  createSession: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions',
    summary: 'Create a session',
    description:
      'Starts a browser and answers once it runs. Without `keepAlive` the session ends shortly after its last client has left, and after 300 seconds if none came. When the answer is lost, send the request again only with the same `Idempotency-Key`; without one, list sessions by a unique value in `userMetadata`.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    unknownFields: 'warn',
    body: CreateSession,
    bodyExample: { timeout: 900, keepAlive: true, userMetadata: { run: 'r-1842' } },
    mayWait: true,
    secretFields: ['connectUrl', 'seleniumRemoteUrl', 'signingKey'],
    responses: {
      201: {
        description: 'The session, with its connection fields.',
        schema: Session,
        headers: { Location: 'Path of the session.', ...ADMITTED },
      },
    },
    errors: [
      'unknown_field',
      'conflicting_fields',
      'project_mismatch',
      'feature_unavailable',
      'concurrency_limit',
      'rate_limited',
      'capacity',
      'browser_start_timeout',
    ],
  },
  listSessions: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions',
    summary: 'List sessions',
    description: 'Sessions of the application, newest first, without connection fields. A bare array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    query: SessionQuery,
    responses: {
      200: {
        description: 'The sessions; `[]` when none matches.',
        schema: Type.Array(Session),
        headers: { 'x-next-before': 'Present when there may be more: pass it as `before`.' },
      },
    },
    errors: ['invalid_query'],
  },
  readSession: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}',
    summary: 'Read a session',
    description:
      'One session; with its connection fields while PENDING or RUNNING, with `endedAt` and `endReason` once ended.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The session.', schema: Session } },
    errors: ['not_found'],
  },
  updateSession: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions/{id}',
    summary: 'Update or release a session',
    description:
      'Ends the session with `status` `REQUEST_RELEASE`, or changes its metadata or time limit while it runs. A release is answered once the browser is closed.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    unknownFields: 'warn',
    params: SessionParams,
    body: UpdateSession,
    bodyExample: { status: 'REQUEST_RELEASE' },
    responses: {
      200: {
        description:
          'The session as it is now, without connection fields. On the compatibility mount a repeated release answers the ended session too.',
        schema: Session,
      },
    },
    errors: ['unknown_field', 'project_mismatch', 'not_found', 'session_not_running'],
  },
  listSessionEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/events',
    summary: "Read a session's events",
    description: `What happened to the session, oldest first; kept for 31 days after its end. ${STREAMED} The stream begins with the first event and is closed behind \`session.ended\`; asked for again behind that one, it answers 204.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: SessionEventsQuery,
    responses: EVENTS_ANSWER,
    errors: ['not_found', 'stream_limit'],
  },
  listEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/events',
    summary: 'Read events of all sessions',
    description: `The same for every session of the application. ${STREAMED} Without \`after\` the stream begins now; \`after=0\` begins with the oldest event there is.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    query: EventsQuery,
    responses: EVENTS_ANSWER,
    errors: ['stream_limit'],
  },

  // ---- connect -----------------------------------------------------------------------------------------------------
  connectSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect',
    summary: 'Connect over CDP',
    description:
      'The WebSocket of a session: give the whole `connectUrl` to Playwright, Puppeteer or any CDP client. A session that is still PENDING is waited for, up to 30 seconds. Close codes: 1000 released, 4001 timed out, 4002 crashed, 4003 idle, 1001 the service restarts.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 101: { description: 'The WebSocket is open.' } },
    errors: ['not_found', 'session_ended', 'upgrade_required', 'client_limit', 'capacity'],
  },
  discoverSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect/json/version',
    alsoWithSlash: true,
    summary: 'Discover the CDP address',
    description:
      'For clients that are given the connect address as http(s) and look up the WebSocket address themselves. With a trailing slash as well.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 200: { description: 'What a browser answers at /json/version.', schema: BrowserVersion } },
    errors: ['not_found', 'session_ended'],
  },

  // ---- applications ------------------------------------------------------------------------------------------------
  listApplications: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications',
    summary: 'List applications',
    description: 'Those that the account is a member of and the token may reach, newest first.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    query: PageQuery,
    responses: { 200: { description: 'A page of applications.', schema: ApplicationPage } },
    errors: [],
  },
  createApplication: {
    tag: 'Applications',
    method: 'POST',
    path: '/v1/applications',
    summary: 'Create an application',
    description: 'The caller becomes its owner; its account is billed. At most 50 per account.',
    credential: 'account',
    scopes: ['applications:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: CreateApplication,
    bodyExample: { name: 'Shop agent' },
    responses: { 201: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['name_taken', 'limit_reached'],
  },
  readApplication: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications/{appId}',
    summary: 'Read an application',
    description: 'One application, with its revision as `ETag`.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['not_found'],
  },
  renameApplication: {
    tag: 'Applications',
    method: 'PATCH',
    path: '/v1/applications/{appId}',
    summary: 'Rename an application',
    description: 'Needs the role admin. The slug stays.',
    credential: 'account',
    scopes: ['applications:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    headers: IfMatchHeader,
    body: RenameApplication,
    bodyExample: { name: 'Shop agent, Europe' },
    responses: { 200: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },

  // ---- limits ------------------------------------------------------------------------------------------------------
  readLimits: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications/{appId}/limits',
    summary: 'Read limits',
    description: 'What the application may use, what holds under the ceiling of the operator, and what is used now.',
    credential: 'account',
    scopes: [...READ_APPLICATIONS, 'limits:write'],
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The limits.', schema: Limits, headers: ETAG } },
    errors: ['not_found'],
  },
  replaceLimits: {
    tag: 'Applications',
    method: 'PUT',
    path: '/v1/applications/{appId}/limits',
    summary: 'Replace limits',
    description:
      'Replaces what is configured: a member that is left out has its default. Holds from the next create on; a limit below its use ends nothing. Needs the role owner.',
    credential: 'account',
    scopes: ['limits:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    headers: IfMatchHeader,
    body: ReplaceLimits,
    bodyExample: { browsers: { maxConcurrent: 25, maxCreatesPerMinute: 120, maxWaiting: 50 } },
    responses: { 200: { description: 'The limits.', schema: Limits, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },

  // ---- agent keys --------------------------------------------------------------------------------------------------
  listAgentKeys: {
    tag: 'Agent keys',
    method: 'GET',
    path: '/v1/applications/{appId}/agent-keys',
    summary: 'List agent keys',
    description: 'Living keys and those that ended in the last 90 days, newest first; never the keys themselves.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of keys.', schema: AgentKeyPage } },
    errors: ['not_found'],
  },
  createAgentKey: {
    tag: 'Agent keys',
    method: 'POST',
    path: '/v1/applications/{appId}/agent-keys',
    summary: 'Issue an agent key',
    description: 'Needs the role developer. The key is in this answer only. At most 200 living keys per application.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    body: CreateAgentKey,
    bodyExample: { name: 'nightly', scopes: ['browsers:read', 'browsers:write', 'browsers:connect'] },
    secretFields: ['key'],
    responses: { 201: { description: 'The key, with its secret.', schema: IssuedAgentKey, headers: ETAG } },
    errors: ['not_found', 'limit_reached'],
  },
  readAgentKey: {
    tag: 'Agent keys',
    method: 'GET',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Read an agent key',
    description: 'One key, never the secret.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: AgentKeyParams,
    responses: { 200: { description: 'The key.', schema: AgentKey, headers: ETAG } },
    errors: ['not_found'],
  },
  changeAgentKey: {
    tag: 'Agent keys',
    method: 'PATCH',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Change an agent key',
    description: 'Name, address ranges, or an earlier end. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: AgentKeyParams,
    headers: IfMatchHeader,
    body: ChangeAgentKey,
    bodyExample: { name: 'nightly, Europe' },
    responses: { 200: { description: 'The key.', schema: AgentKey, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
  revokeAgentKey: {
    tag: 'Agent keys',
    method: 'DELETE',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Revoke an agent key',
    description: 'At once, in every process. Running sessions go on. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    params: AgentKeyParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['not_found'],
  },
  rotateAgentKey: {
    tag: 'Agent keys',
    method: 'POST',
    path: '/v1/applications/{appId}/agent-keys/{keyId}/rotate',
    summary: 'Rotate an agent key',
    description: 'Issues a key with the same rights; the old one ends after the grace. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: AgentKeyParams,
    body: RotateAgentKey,
    bodyExample: { graceSeconds: 600 },
    secretFields: ['key'],
    responses: { 201: { description: 'The new key, with its secret.', schema: IssuedAgentKey, headers: ETAG } },
    errors: ['not_found', 'limit_reached', 'precondition_failed'],
  },

  // ---- tokens ------------------------------------------------------------------------------------------------------
  listTokens: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens',
    summary: 'List tokens',
    description: "The account's tokens, newest first; never the tokens themselves.",
    credential: 'account',
    isWrite: false,
    mount: 'native',
    query: PageQuery,
    responses: { 200: { description: 'A page of tokens.', schema: TokenPage } },
    errors: [],
  },
  createToken: {
    tag: 'Tokens',
    method: 'POST',
    path: '/v1/account/tokens',
    summary: 'Issue a token',
    description:
      'With at most the rights of the calling token. The token is in this answer only. At most 100 living tokens per account.',
    credential: 'account',
    scopes: ['account:tokens'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: CreateToken,
    bodyExample: { name: 'ci', scopes: ['applications:read', 'keys:write'] },
    secretFields: ['token'],
    responses: { 201: { description: 'The token, with its secret.', schema: IssuedToken } },
    errors: ['limit_reached'],
  },
  readCurrentToken: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens/current',
    summary: 'Read the calling token',
    description: 'The credential that this very request was made with.',
    credential: 'account',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The calling token.', schema: Token } },
    errors: [],
  },
  revokeToken: {
    tag: 'Tokens',
    method: 'DELETE',
    path: '/v1/account/tokens/{id}',
    summary: 'Revoke a token',
    description: 'At once, in every process. A second time answers 404.',
    credential: 'account',
    isWrite: true,
    mount: 'native',
    params: TokenParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['not_found'],
  },

  // ---- compatibility -----------------------------------------------------------------------------------------------
  listProjects: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects',
    summary: 'List projects',
    description: "The key's own application, as a list of one.",
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    responses: { 200: { description: 'A bare array.', schema: Type.Array(Project) } },
    errors: [],
  },
  readProject: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects/{id}',
    summary: 'Read a project',
    description: "The key's own application.",
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    params: ProjectParams,
    responses: { 200: { description: 'The project.', schema: Project } },
    errors: ['not_found'],
  },
  readProjectUsage: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects/{id}/usage',
    summary: 'Read usage',
    description: 'What the application has used so far.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    params: ProjectParams,
    responses: { 200: { description: 'Minutes and bytes.', schema: ProjectUsage } },
    errors: ['not_found'],
  },
  startSession: {
    tag: 'Compatibility',
    method: 'POST',
    path: '/v1/sessions/start',
    summary: 'Start (Stagehand 3)',
    description:
      "Creates a session from `browserbaseSessionCreateParams`, or takes the one in `browserbaseSessionID`, and tells the client to run its own steps. Everything else in the body is ignored; the client's model key is neither kept nor logged.",
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'compat',
    unknownFields: 'ignore',
    body: StartSession,
    bodyExample: { browserbaseSessionCreateParams: { keepAlive: true } },
    mayWait: true,
    responses: { 200: { description: 'Created or taken.', schema: StartedSession, headers: ADMITTED } },
    errors: [
      'conflicting_fields',
      'project_mismatch',
      'feature_unavailable',
      'not_found',
      'concurrency_limit',
      'rate_limited',
      'capacity',
      'browser_start_timeout',
    ],
  },
  endSession: {
    tag: 'Compatibility',
    method: 'POST',
    path: '/v1/sessions/{id}/end',
    summary: 'End (Stagehand 3)',
    description: 'Releases the session. An ended one is fine too.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'compat',
    unknownFields: 'ignore',
    params: SessionParams,
    body: Type.Object({}),
    responses: { 200: { description: 'Ended.', schema: EndedSession } },
    errors: ['not_found'],
  },

  // ---- service -----------------------------------------------------------------------------------------------------
  welcome: {
    tag: 'Service',
    method: 'GET',
    path: '/',
    summary: 'Where you are',
    description: 'Name, version and where the reference is. A browser gets a page.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The service.', schema: Welcome } },
    errors: [],
  },
  readHealth: {
    tag: 'Service',
    method: 'GET',
    path: '/healthz',
    summary: 'Health',
    description: 'The process lives.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'It does.', schema: Health } },
    errors: [],
  },
  readReadiness: {
    tag: 'Service',
    method: 'GET',
    path: '/readyz',
    summary: 'Readiness',
    description: 'The database answers and browsers can be started.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'Ready.', schema: Readiness },
      503: { description: 'Not ready; the checks say why.', schema: Readiness },
    },
    errors: [],
  },
  readMetrics: {
    tag: 'Service',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics',
    description: 'For Prometheus.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'Text exposition format.', contentType: 'text/plain' } },
    errors: [],
  },
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

/** What a validated request of an operation holds. */
export interface Asked<Id extends OperationId> {
  readonly params: Part<Id, 'params'>;
  readonly query: Part<Id, 'query'>;
  readonly headers: Part<Id, 'headers'>;
  readonly body: Part<Id, 'body'>;
}

/** Whether a request with the same `Idempotency-Key` gets the answer of the first. */
export function isRepeatable(id: OperationId): boolean {
  const { method, credential } = operation(id);
  return method === 'POST' && (credential === 'agentKey' || credential === 'account');
}

/** Headers that any request may have, whatever the operation: described, and read by who honours them. */
export function optionalHeadersOf(id: OperationId): TSchema {
  const { mayWait, unknownFields } = operation(id);
  return Type.Object({
    ...(isRepeatable(id) ? IdempotencyHeader : {}),
    ...(mayWait ? PreferWaitHeader : unknownFields === 'warn' ? PreferHandlingHeader : {}),
  });
}

/** Every code an operation can answer: its own, and those that follow from how it is called. */
export function errorsOf(id: OperationId): readonly ErrorCode[] {
  const { body, query, headers, credential, scopes, errors } = operation(id);
  const codes = new Set<ErrorCode>(errors);
  if (isRepeatable(id)) codes.add('invalid_request').add('idempotency_conflict');
  if (body || query || headers) codes.add('invalid_request');
  if (operation(id).unknownFields === 'refuse') codes.add('unknown_field');
  if (body) codes.add('payload_too_large').add('unsupported_media_type');
  if (credential !== 'public') codes.add('missing_credentials').add('invalid_credentials');
  if (scopes || credential === 'connect') codes.add('permission_denied');
  codes.add('internal');
  return [...codes].sort((a, b) => ERRORS[a].status - ERRORS[b].status || a.localeCompare(b));
}

const NATIVE_PREFIX = '/v1/browsers/';
export const COMPAT_PREFIXES = ['/v1/', '/v1/browsers/v1/'] as const;

/** Every path an operation is served at; the native one first. */
export function pathsOf(id: OperationId, compat: boolean): ReadonlyArray<{ path: string; mount: 'native' | 'compat' }> {
  const { path, mount } = operation(id);
  const native = mount === 'compat' ? [] : [{ path, mount: 'native' as const }];
  if (mount === 'native' || !compat) return native;
  const tail = path.slice(mount === 'compat' ? COMPAT_PREFIXES[0].length : NATIVE_PREFIX.length);
  return [...native, ...COMPAT_PREFIXES.map(prefix => ({ path: `${prefix}${tail}`, mount: 'compat' as const }))];
}
