// The description of an operation. It is sufficient to validate, route, document and authorize the operation.
import type { TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * `agentKey`: bak_…. `account`: a personal access token (bpt_…), a developer token (bdt_…) or the cookie of a person
 * who signed in. `human`: that cookie only. `connect`: the session's own signing key, or an agent key with
 * browsers:connect. `deviceCode`: the device code of the authorization that the path names. `consumer`: a consumer
 * session (bcs_…) of the application and provider in the path, or its cookie on our own pages. `agentKeyOrAccount`: any
 * credential of `agentKey` or `account`. For one hand-off: `handoffReader` accepts any credential of
 * `agentKeyOrAccount`, the lease token of the hand-off (bhl_…) or the secret of its claim link (bhc_…);
 * `handoffClaimer` accepts the cookie of a person or that secret; `handoffLease` accepts the lease token.
 */
export type Credential =
  | 'public'
  | 'agentKey'
  | 'account'
  | 'human'
  | 'connect'
  | 'deviceCode'
  | 'consumer'
  | 'agentKeyOrAccount'
  | 'handoffReader'
  | 'handoffClaimer'
  | 'handoffLease';

/**
 * Where an operation is served. `native`: only at its own path. `both`: at its path under /v1/browsers, and under /v1
 * and /v1/browsers/v1, where the official clients of other services send requests. `compat`: only under the latter two.
 */
export type Mount = 'native' | 'both' | 'compat';

export const TAGS = {
  Sessions: 'Create, find, change and release browser sessions.',
  Recordings: 'Replay sessions while they run and after they end.',
  Connect: 'Control a browser over CDP.',
  'Live view': 'Watch a running browser and take control of it.',
  'Hand-offs': 'Ask a person to take control of a running session.',
  MCP: 'Browsers for agents that use the Model Context Protocol.',
  Operations: 'Tasks that an agent can run with one call.',
  Credentials: 'Credentials of other services that operations use. Their values are never returned.',
  Invocations: 'Calls of operations, with their output and a signed receipt.',
  Actions: 'Calls that a person approves before they are executed, once.',
  Downloads: 'Files that browsers downloaded.',
  Contexts: 'Keep cookies and storage from one session to the next.',
  Extensions: 'Browser extensions that sessions load.',
  Certificates: 'Certificate authorities that sessions trust.',
  Applications: 'Applications own keys, sessions and usage.',
  Credit: 'Credit that sessions and operations use.',
  Webhooks: 'Endpoints that receive the events of an application.',
  Consumers: 'End users of an application: how they sign in, and what is stored about them.',
  Members: 'Accounts with a role in an application, and invitations to it.',
  'Agent keys': 'Credentials of programs that use browsers.',
  'Sign-in': 'Sign in with a browser.',
  Account: 'The account of the person who is signed in.',
  Tokens: 'Personal access tokens for scripts that manage accounts and applications.',
  Audit: 'Who did what in an application.',
  'Device authorization': 'Give a program on another device access with a code.',
  Compatibility: 'Routes that exist only for official clients of other services.',
  Service: 'Health, metrics and descriptions.',
} as const;
export type Tag = keyof typeof TAGS;

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: TSchema;
  /** Default: JSON. */
  readonly contentType?: string;
  /** The response may also be a file of any type, if the caller accepts it. */
  readonly mayBeFile?: true;
  /** Other content types of the response that a caller may accept, with their schemas. */
  readonly alternativeTypes?: Readonly<Record<string, TSchema>>;
  /** The description of the response for a caller who accepts server-sent events. */
  readonly streamDescription?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface UploadSpec {
  /** If absent, the limits of the application apply. */
  readonly maxBytes?: number;
  /** An example of a file name. */
  readonly example: string;
  readonly description: string;
}

export interface Operation {
  readonly tag: Tag;
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly credential: Credential;
  /**
   * Only pages of this service may send the request, because its response signs the browser in, or because it uses the
   * passkeys of this service's host name.
   */
  readonly ownPageOnly?: true;
  /** A request with an `Origin` header of another origin is refused. Programs send no `Origin`. */
  readonly ownOriginOnly?: true;
  /** Pages of the origins that the application in the path has registered may also send the request (CORS). */
  readonly allowsRegisteredOrigins?: true;
  /** A credential needs at least one of these scopes. */
  readonly scopes?: readonly string[];
  /** Requires that the person has recently given the strongest proof of identity that the account allows (RFC 9470). */
  readonly stepUp?: true;
  readonly isWrite: boolean;
  /** Not counted against the rate limits of the credential, because it creates, releases or drives a session. */
  readonly isExemptFromRateLimits?: true;
  /** Handles `Idempotency-Key` itself, because it keeps the key for longer than 24 hours. */
  readonly hasOwnIdempotency?: true;
  readonly mount: Mount;
  /** Also served with a slash at the end of the path. */
  readonly allowsTrailingSlash?: boolean;
  /** How body fields that are not in the schema are handled. */
  readonly unknownFields?: 'warn' | 'ignore' | 'refuse';
  /**
   * Fields that restrict what is created, by path, each with alternative names that callers may use. An unknown field
   * that may be one of these fields, or that is inside one of them, is refused.
   */
  readonly protectingFields?: Readonly<Record<string, readonly string[]>>;
  /** An OAuth endpoint: it also accepts forms, and its errors have the fields of RFC 6749. */
  readonly oauth?: true;
  /** The schema of JSON-RPC errors in the body. API errors have the same form as in all other operations. */
  readonly jsonRpcError?: TSchema;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly bodyExample?: unknown;
  /** The body is multipart/form-data with one part, a file named `file`. */
  readonly upload?: UploadSpec;
  /** The request can be queued: `Prefer: wait=SECONDS`. */
  readonly mayWait?: boolean;
  /** Fields of the response that are not stored, so the response to a repeated request does not contain them. */
  readonly secretFields?: readonly string[];
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  readonly errors: readonly ErrorCode[];
}
