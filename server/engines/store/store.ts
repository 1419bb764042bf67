// What the rest of the server may ask of the database. Every query stands behind one of these interfaces,
// in tables/<noun>.ts; nothing outside this folder writes SQL. The application comes first wherever there is one.
import type { AccountId, ApplicationId, HostId, KeyId, SessionId, TokenId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export interface Store extends Closeable {
  readonly accounts: Accounts;
  readonly applications: Applications;
  readonly tokens: Tokens;
  readonly keys: Keys;
  readonly hosts: Hosts;
  readonly sessions: SessionRows;
  readonly limits: LimitsRows;
  readonly idempotency: IdempotencyRows;
  readonly events: EventRows;
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  /** Calls `heard` for each NOTIFY on the channel, also after a reconnect; `onGap` says that some may have been missed. */
  listen(channel: Channel, heard: (payload: string) => void, onGap: () => void): Promise<Closeable>;
}

/**
 * `credential_revoked`: payload is the hex hash of a revoked key or token. `session_event`: application id, blank, session
 * id, of events that were committed; one may be lost when a process dies, so readers look now and then as well.
 */
export type Channel = 'credential_revoked' | 'session_event';

// ---- accounts, applications, credentials -------------------------------------------------------------------------

export interface AccountRow {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: Date;
}

export interface Accounts {
  /** The account of the first start, or undefined on an empty database. */
  first(): Promise<AccountRow | undefined>;
  insert(row: AccountRow): Promise<void>;
}

export type Role = 'owner' | 'admin' | 'developer' | 'viewer';

export interface ApplicationRow {
  readonly id: ApplicationId;
  readonly name: string;
  readonly slug: string;
  readonly billingAccountId: AccountId;
  readonly revision: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface Applications {
  /** Inserts the application and makes the account its owner; `slug_taken` when the slug stands on this install. `limit` = most living applications of the account. */
  insert(row: ApplicationRow, owner: AccountId, limit: number): Promise<'inserted' | 'slug_taken' | 'limit_reached'>;
  /** Those the account is a member of, newest first, after the row named by `before`. */
  list(
    account: AccountId,
    page: { limit: number; before?: ApplicationId },
  ): Promise<Array<ApplicationRow & { role: Role }>>;
  get(id: ApplicationId, account: AccountId): Promise<(ApplicationRow & { role: Role }) | undefined>;
  /** For the CLI and the compatibility mount, which have no account: by id, by slug, or by exact name. */
  find(idOrName: string): Promise<ApplicationRow[]>;
  byId(id: ApplicationId): Promise<ApplicationRow | undefined>;
  /** Renames when `revision` still stands. */
  rename(id: ApplicationId, revision: number, name: string, now: Date): Promise<ApplicationRow | undefined>;
}

export interface CredentialRow {
  readonly name: string;
  /** The first characters, shown in lists: `bak_x7Qk`. */
  readonly prefix: string;
  /** SHA-256 of the whole credential. */
  readonly hash: Buffer;
  readonly scopes: readonly string[];
  readonly cidrAllow: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
  readonly lastUsedIp?: string;
}

export interface TokenRow extends CredentialRow {
  readonly id: TokenId;
  readonly accountId: AccountId;
  /** Absent: all, present and future. */
  readonly applicationIds?: readonly ApplicationId[];
}

export interface Tokens {
  insert(row: TokenRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Living ones and those that ended less than 90 days ago, newest first. */
  list(account: AccountId, now: Date, page: { limit: number; before?: TokenId }): Promise<TokenRow[]>;
  get(account: AccountId, id: TokenId): Promise<TokenRow | undefined>;
  byHash(hash: Buffer): Promise<TokenRow | undefined>;
  /** Marks it revoked and NOTIFYs in one transaction; false when there was no living token. */
  revoke(account: AccountId, id: TokenId, now: Date): Promise<boolean>;
  touch(id: TokenId, at: Date, ip: string): Promise<void>;
}

export interface KeyRow extends CredentialRow {
  readonly id: KeyId;
  readonly applicationId: ApplicationId;
  readonly revision: number;
}

export interface KeyChange {
  readonly name?: string;
  readonly cidrAllow?: readonly string[];
  readonly expiresAt?: Date;
}

export interface Keys {
  insert(row: KeyRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  list(application: ApplicationId, now: Date, page: { limit: number; before?: KeyId }): Promise<KeyRow[]>;
  get(application: ApplicationId, id: KeyId): Promise<KeyRow | undefined>;
  byHash(hash: Buffer): Promise<KeyRow | undefined>;
  /** Changes it when `revision` still stands. */
  change(application: ApplicationId, id: KeyId, revision: number, change: KeyChange): Promise<KeyRow | undefined>;
  revoke(application: ApplicationId, id: KeyId, now: Date): Promise<boolean>;
  touch(id: KeyId, at: Date, ip: string): Promise<void>;
}

// ---- hosts ---------------------------------------------------------------------------------------------------------

export interface HostRow {
  readonly id: HostId;
  readonly region: string;
  readonly slots: number;
  readonly startedAt: Date;
}

export interface Hosts {
  /** Inserts or replaces this process's row. */
  announce(row: HostRow): Promise<void>;
}

// ---- sessions ------------------------------------------------------------------------------------------------------

export type SessionStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'TIMED_OUT' | 'ERROR';

/** What the session's next start or a successor process needs to find its browser again. Owned by engines/slots and engines/browser. */
export type BoxJson = JsonObject;

export interface SessionRow {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly keyId?: KeyId;
  readonly status: SessionStatus;
  readonly region: string;
  readonly keepAlive: boolean;
  readonly userMetadata: JsonObject;
  readonly settings: JsonObject;
  readonly proxyBytes: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
  /** The end that was decided: set once, before the browser is closed; `status` follows when it is dead. */
  readonly end?: SessionEnd;
  /** No client may stay away longer than this; absent once one came, or with keepAlive. */
  readonly connectBy?: Date;
  /** The last client left, and the session ends at this time unless one returns. */
  readonly releaseAt?: Date;
  /** Whether a client is attached, as last written; a successor reads it. */
  readonly attached: boolean;
  readonly box?: BoxJson;
}

export interface SessionEnd {
  readonly status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
  readonly reason: string;
  /** For people: what happened, in words; never shown to other applications. */
  readonly detail?: string;
  /** Who decided it, for the event list only. Absent: the service. */
  readonly by?: Actor;
}

export type NewSession = Pick<
  SessionRow,
  'id' | 'applicationId' | 'hostId' | 'region' | 'keepAlive' | 'userMetadata' | 'settings' | 'createdAt' | 'expiresAt'
> & {
  readonly keyId?: KeyId;
  readonly connectBy?: Date;
  /** What was asked, for a create whose answer may get lost: see `claimLost`. */
  readonly createDigest?: Buffer;
};

// ---- admission -----------------------------------------------------------------------------------------------------

/** What an application may have: decided from its configured limits, while they are locked. */
export interface Terms {
  /** Sessions that have not ended. */
  readonly maxConcurrent: number;
  /** Sessions created in any 60 seconds. */
  readonly maxCreatesPerMinute: number;
  /** How long the session lives, which may depend on the limits too; stands above the row's own expiresAt. */
  readonly lifeMs: number;
}

export interface Admission {
  /** May throw: then nothing happened. */
  readonly terms: (configured: JsonObject) => Terms;
  /** The repeatable write that this belongs to; its row learns the session in the same transaction. */
  readonly run?: IdempotencyRun;
}

/** What stands against a limit, the session itself included where it was placed. */
export interface Seats {
  readonly concurrent: { readonly limit: number; readonly used: number };
  /** `oldest`: when the first of those in the window was created. */
  readonly minute: { readonly limit: number; readonly used: number; readonly oldest?: Date };
}

export type Placed =
  | { readonly placed: SessionRow; readonly seats?: Seats }
  | { readonly refused: 'concurrent' | 'minute'; readonly seats: Seats }
  | { readonly full: { readonly slots: number; readonly used: number } };

export interface MetadataTerm {
  /** `user_metadata['a']['b']:'value'` is path ['a','b'], value 'value'. Only string leaves match. */
  readonly path: readonly string[];
  readonly value: string;
}

export interface SessionFilter {
  readonly statuses?: readonly SessionStatus[];
  readonly metadata?: readonly MetadataTerm[];
  readonly limit: number;
  /** The page after this session. */
  readonly before?: SessionId;
}

/** Each change writes its event in the same statement, so that state and event list never tell different stories. */
export interface SessionRows {
  /**
   * Inserts PENDING if the application's limits allow it and the host has a free slot (non-terminal rows < hosts.slots).
   * Decided under locks, the application's limits first, then the host. Without an admission only the host counts.
   */
  place(row: NewSession, admission?: Admission): Promise<Placed>;
  /** Non-terminal sessions of the application, and those created since. */
  countOf(application: ApplicationId, since: Date): Promise<{ living: number; created: number }>;
  /** Whether the create's answer arrived, which was owed until now. */
  answered(id: SessionId, delivered: boolean): Promise<void>;
  /** The oldest living session that this key asked for with this digest since then and never got; owed to the claimer from now on. */
  claimLost(key: KeyId, digest: Buffer, since: Date): Promise<SessionRow | undefined>;
  /** After a restart: answers that were owed did not arrive. Returns how many. */
  loseAnswers(host: HostId): Promise<number>;
  get(application: ApplicationId, id: SessionId): Promise<SessionRow | undefined>;
  /** For the connect path, where the signing key, bound to the id, is the credential. */
  byId(id: SessionId): Promise<SessionRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, filter: SessionFilter): Promise<SessionRow[]>;
  /** Written before the browser process exists to the rest of us, so that a successor can find it. */
  setBox(id: SessionId, box: BoxJson, now: Date): Promise<void>;
  /** PENDING -> RUNNING; undefined when it was ended, or its end decided, meanwhile. */
  run(id: SessionId, startedAt: Date): Promise<SessionRow | undefined>;
  /** Only while RUNNING and no end is decided. */
  change(
    application: ApplicationId,
    id: SessionId,
    change: { userMetadata?: JsonObject; expiresAt?: Date; by?: Actor },
    now: Date,
  ): Promise<SessionRow | undefined>;
  /** Decides the end; the first decision stands. Returns the row with the end that stands, undefined when already terminal. */
  decideEnd(id: SessionId, end: SessionEnd, now: Date): Promise<SessionRow | undefined>;
  /** Moves to the decided end state. Clears `box`. Idempotent; undefined when no end was decided. */
  finish(id: SessionId, endedAt: Date, proxyBytes: number): Promise<SessionRow | undefined>;
  /** A client is here: clears connectBy and releaseAt. `clients`: how many there are with it. */
  clientCame(id: SessionId, now: Date, clients?: number): Promise<void>;
  /** One left, others stay. */
  clientLeft(id: SessionId, now: Date, clients: number): Promise<void>;
  /** The last one left. */
  clientsGone(id: SessionId, releaseAt: Date | undefined, now: Date): Promise<void>;
  /** Non-terminal sessions of this host whose earliest due time has passed, or whose end is decided. */
  due(host: HostId, now: Date, batch: number): Promise<SessionRow[]>;
  /** Every non-terminal session of this host. */
  ofHost(host: HostId): Promise<SessionRow[]>;
  /** After a restart: nobody is attached; connect and disconnect timers start anew, at least until `notBefore`. */
  resumeTimers(host: HostId, notBefore: Date): Promise<void>;
  countByStatus(host: HostId): Promise<Readonly<Partial<Record<SessionStatus, number>>>>;
  /** Sum of minutes and proxy bytes of an application, for the compatibility mount. */
  usage(application: ApplicationId): Promise<{ browserMinutes: number; proxyBytes: number }>;
}

// ---- limits --------------------------------------------------------------------------------------------------------

export interface LimitsRow {
  readonly applicationId: ApplicationId;
  /** What its owner named; the domain knows the defaults. */
  readonly configured: JsonObject;
  readonly revision: number;
  readonly updatedAt: Date;
}

export interface LimitsRows {
  get(application: ApplicationId): Promise<LimitsRow | undefined>;
  /** Replaces what is configured when `revision` still stands. Waits for admissions that hold the row. */
  replace(
    application: ApplicationId,
    revision: number,
    configured: JsonObject,
    now: Date,
  ): Promise<LimitsRow | undefined>;
}

// ---- writes that can be repeated -----------------------------------------------------------------------------------

/** One run of a write under a key. */
export interface IdempotencyRun {
  readonly owner: AccountId | ApplicationId;
  readonly keyDigest: Buffer;
  /** Tells this run from an earlier one under the same key. */
  readonly run: string;
}

export interface IdempotencyRow extends IdempotencyRun {
  readonly requestDigest: Buffer;
  readonly operation: string;
  readonly hostId: HostId;
  /** The session it made, written together with that session. */
  readonly sessionId?: SessionId;
  /** What is answered again; absent while it runs. */
  readonly kept?: JsonObject;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface IdempotencyRows {
  /** Inserts the row, or shows the one that stands. One that has expired by the new row's createdAt counts as gone. */
  begin(row: IdempotencyRow): Promise<{ began: true } | { standing: IdempotencyRow }>;
  /** Keeps what is answered again. */
  keep(run: IdempotencyRun, kept: JsonObject): Promise<void>;
  /** Nothing was done: the key is free again. */
  release(run: IdempotencyRun): Promise<void>;
  /** Removes what has expired, at most this many; returns how many. */
  sweep(now: Date, batch: number): Promise<number>;
}

// ---- events --------------------------------------------------------------------------------------------------------

export type SessionEventType =
  | 'session.created'
  | 'session.launched'
  | 'session.claimed'
  | 'session.started'
  | 'client.connected'
  | 'client.disconnected'
  | 'client.refused'
  | 'session.updated'
  | 'session.adopted'
  | 'session.release_requested'
  | 'session.end_decided'
  | 'session.ended'
  | 'session.events_limited';

export interface Actor {
  readonly kind: 'agentKey' | 'client' | 'clock' | 'operator' | 'service' | 'browser';
  readonly id?: string;
}

export interface SessionEventRow {
  /** Grows in the order in which events of one application can be read; the numbers between belong to others. */
  readonly id: number;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  readonly at: Date;
  readonly type: SessionEventType;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventFilter {
  /** Only events behind this one; 0: all. */
  readonly after: number;
  readonly session?: SessionId;
  readonly types?: readonly SessionEventType[];
  readonly limit: number;
}

export interface EventRows {
  /** For what is no change of the row. Nothing happens where the session has ended. */
  append(
    session: SessionId,
    event: { readonly type: SessionEventType; readonly at: Date; readonly actor: Actor; readonly detail: JsonObject },
  ): Promise<void>;
  /**
   * Oldest first. Whatever is committed later has a greater id than `through`: who goes on from there misses nothing.
   * `full`: there may be more up to now.
   */
  read(
    application: ApplicationId,
    filter: EventFilter,
  ): Promise<{ events: readonly SessionEventRow[]; through: number; full: boolean }>;
  /** The `through` of now. */
  newest(application: ApplicationId): Promise<number>;
  /** Forgets the events of sessions that ended before this; how many sessions those were, at most `batch`. */
  forget(endedBefore: Date, batch: number): Promise<number>;
}
