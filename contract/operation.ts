// What is said of an operation: enough to validate, route, describe and authorize it.
import type { TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * `agentKey`: bak_…. `account`: a personal access token (bpt_…), a developer token (bdt_…) or the cookie of a person who signed
 * in. `human`: that cookie only. `connect`: the session's own signing key, or an agent key with browsers:connect.
 * `deviceCode`: the device code of the authorization that the path names.
 */
export type Credential = 'public' | 'agentKey' | 'account' | 'human' | 'connect' | 'deviceCode';

/** Native paths stand under /v1/browsers; `both` means also where official clients look, under /v1 and /v1/browsers/v1. */
export type Mount = 'native' | 'both' | 'compat';

export const TAGS = {
  Sessions: 'Create, find, change and release browser sessions.',
  Recordings: 'Replay sessions while they run and after they end.',
  Connect: 'Control a browser over CDP.',
  'Live view': 'Watch a running browser and take control of it.',
  MCP: 'Browsers for agents that speak the Model Context Protocol.',
  Downloads: 'Files that browsers downloaded.',
  Contexts: 'Keep cookies and storage from one session to the next.',
  Extensions: 'Browser extensions that sessions load.',
  Certificates: 'Certificate authorities that sessions trust.',
  Applications: 'Applications own keys, sessions and usage.',
  Members: 'Accounts with a role in an application, and invitations to it.',
  'Agent keys': 'Credentials of programs that use browsers.',
  'Sign-in': 'Sign in with a browser.',
  Account: 'The account of the person who is signed in.',
  Tokens: 'Personal access tokens for scripts that manage accounts and applications.',
  Audit: 'Who did what in an application.',
  'Device authorization': 'Give a program on another device access, by a code.',
  Compatibility: 'Routes that exist only for official clients of other services.',
  Service: 'Health, metrics and descriptions.',
} as const;
export type Tag = keyof typeof TAGS;

export interface Answer {
  readonly description: string;
  readonly schema?: TSchema;
  /** JSON unless named. */
  readonly contentType?: string;
  /** It may also be the bytes of a file of any type, where the caller accepts those. */
  readonly orBytes?: true;
  /** Other types it may have, where the caller accepts those, and what they hold. */
  readonly otherTypes?: Readonly<Record<string, TSchema>>;
  /** What a caller gets who accepts server-sent events. */
  readonly asStream?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Upload {
  /** Absent: what the application's limits allow. */
  readonly maxBytes?: number;
  /** A name such a file has. */
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
  /** Only pages of this service may send it, because the answer signs the browser in. */
  readonly ownPageOnly?: true;
  /** One of these is enough. */
  readonly scopes?: readonly string[];
  /** A person must have proved recently, and as strongly as the account is able to, who they are (RFC 9470). */
  readonly stepUp?: true;
  readonly isWrite: boolean;
  /** Not counted as a read or write of the credential: it creates, releases or drives a session. */
  readonly isUncounted?: true;
  readonly mount: Mount;
  /** Served with a slash at the end of the path too. */
  readonly alsoWithSlash?: boolean;
  /** What happens to body fields that the schema does not know. */
  readonly unknownFields?: 'warn' | 'ignore' | 'refuse';
  /**
   * Fields that restrict what is created, by path, each with other names that callers give it. An unknown field that may be one
   * of them, or stands inside one, is refused.
   */
  readonly protectingFields?: Readonly<Record<string, readonly string[]>>;
  /** An OAuth endpoint: it takes forms too, and its errors have the fields of RFC 6749. */
  readonly oauth?: true;
  /** Errors of the protocol inside the body are JSON-RPC errors, which have this schema; those of the API are as everywhere. */
  readonly protocolError?: TSchema;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly bodyExample?: unknown;
  /** The body is multipart/form-data with one part, a file named `file`. */
  readonly upload?: Upload;
  /** It may be queued: `Prefer: wait=SECONDS`. */
  readonly mayWait?: boolean;
  /** Fields of the answer that are never kept for a repetition. */
  readonly secretFields?: readonly string[];
  readonly responses: Readonly<Record<number, Answer>>;
  readonly errors: readonly ErrorCode[];
}
