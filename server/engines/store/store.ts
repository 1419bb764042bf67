// What the rest of the server may ask of the database. Every query stands behind one of these interfaces,
// in tables/<noun>.ts; nothing outside this folder writes SQL. The application comes first wherever there is one.
import type {
  AccountId,
  ApplicationId,
  CertificateId,
  ContextId,
  DownloadId,
  ExtensionId,
  HostId,
  KeyId,
  SessionId,
  TokenId,
  UploadId,
  VersionId,
} from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

import type { ControlRows } from './control-rows.ts';

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
  readonly controls: ControlRows;
  readonly contexts: ContextRows;
  readonly contextUses: ContextUses;
  readonly outbox: OutboxRows;
  readonly uploads: UploadRows;
  readonly downloads: DownloadRows;
  readonly storedBytes: StoredBytes;
  readonly retention: RetentionRows;
  readonly certificates: CertificateRows;
  readonly recordings: RecordingRows;
  readonly extensions: ExtensionRows;
  readonly logs: LogRows;
  readonly pages: PageRows;
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
  /** All bytes to and from the network, as last noted; counted where somebody asks for it. */
  readonly egressBytes: number;
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
  /** PENDING -> RUNNING; undefined when it was ended, or its end decided, meanwhile. `box`: of a browser that waited. */
  run(id: SessionId, startedAt: Date, box?: BoxJson): Promise<SessionRow | undefined>;
  /** Only while RUNNING and no end is decided. */
  change(
    application: ApplicationId,
    id: SessionId,
    change: { userMetadata?: JsonObject; expiresAt?: Date; by?: Actor },
    now: Date,
  ): Promise<SessionRow | undefined>;
  /** Decides the end; the first decision stands. Returns the row with the end that stands, undefined when already terminal. */
  decideEnd(id: SessionId, end: SessionEnd, now: Date): Promise<SessionRow | undefined>;
  /**
   * Moves to the decided end state. Clears `box`. Idempotent; undefined when no end was decided. `kept`: when its files are
   * due to go, and when the row itself is; without it they stay.
   */
  finish(
    id: SessionId,
    endedAt: Date,
    proxyBytes: number,
    kept?: { readonly filesDueAt: Date; readonly forgetDueAt: Date },
  ): Promise<SessionRow | undefined>;
  /** What has flowed so far. Never less than before; nothing happens once the session has ended. */
  countTraffic(id: SessionId, traffic: { proxyBytes: number; egressBytes: number }): Promise<void>;
  /** A client is here: clears connectBy and releaseAt. `clients`: how many there are with it. */
  clientCame(id: SessionId, now: Date, clients?: number): Promise<void>;
  /** One left, others stay. */
  clientLeft(id: SessionId, now: Date, clients: number, why?: string): Promise<void>;
  /** The last one left. */
  clientsGone(id: SessionId, releaseAt: Date | undefined, now: Date, why?: string): Promise<void>;
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
  | 'recording.limited'
  | 'file.uploaded'
  | 'download.completed'
  | 'download.failed'
  | 'session.adopted'
  | 'session.release_requested'
  | 'session.end_decided'
  | 'session.ended'
  | 'control.taken'
  | 'control.given_back'
  | 'control.expired'
  | 'control.refused'
  | 'devtools.opened'
  | 'devtools.closed'
  | 'live.links_revoked'
  | 'session.events_limited'
  | 'context.restored'
  | 'context.version_skipped'
  | 'context.saved'
  | 'context.saved_partially'
  | 'context.save_failed'
  | 'context.overtaken'
  | 'network.refused'
  | 'navigation.refused'
  | 'proxy.failed';

export interface Actor {
  readonly kind: 'agentKey' | 'client' | 'clock' | 'operator' | 'service' | 'browser' | 'viewer';
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

export interface NamedEvent {
  readonly type: SessionEventType;
  readonly at: Date;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventRows {
  /** For what is no change of the row. Nothing happens where the session has ended. */
  append(session: SessionId, event: NamedEvent): Promise<void>;
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

// ---- contexts ------------------------------------------------------------------------------------------------------

export interface ContextRow {
  readonly id: ContextId;
  readonly applicationId: ApplicationId;
  readonly name?: string;
  /** The context's data key, sealed under the installation's secret. */
  readonly wrappedKey: Buffer;
  /** 0: nothing was saved yet. */
  readonly version: number;
  readonly sizeBytes: number;
  readonly lastSessionId?: SessionId;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewContext = Pick<ContextRow, 'id' | 'applicationId' | 'name' | 'wrappedKey' | 'createdAt'>;

export type VersionSource = 'session' | 'restore' | 'fork' | 'import';

/** A stored object: under whose id it lies, and the SHA-256 of its bytes. */
export interface StoredArchive {
  readonly of: VersionId;
  readonly checksum: Buffer;
}

/** What a version consists of. */
export interface VersionFacts {
  readonly source: VersionSource;
  readonly sessionId?: SessionId;
  readonly partial: boolean;
  readonly sizeBytes: number;
  readonly archive?: StoredArchive;
  /** Under whose id they lie. */
  readonly cookiesOf?: VersionId;
}

export interface VersionRow extends VersionFacts {
  readonly id: VersionId;
  readonly version: number;
  readonly createdAt: Date;
  /** An earlier one: when it goes. */
  readonly expiresAt?: Date;
}

/** What happened to which session. */
export interface SessionNews extends NamedEvent {
  readonly session: SessionId;
}

export interface KeepVersion {
  readonly id: VersionId;
  readonly facts: VersionFacts;
  readonly now: Date;
  /** Versions behind the newest: how many, and until when. */
  readonly earlier: { readonly most: number; readonly until: Date };
}

export interface Kept {
  readonly context: ContextRow;
  /** The save that this one replaced without having started from it. */
  readonly overtook?: VersionRow;
}

/** Every verb on a context that is destroyed, or another application's, finds nothing. */
export interface ContextRows {
  insert(row: NewContext, limit: number): Promise<'inserted' | 'name_taken' | 'limit_reached'>;
  get(application: ApplicationId, id: ContextId): Promise<ContextRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, page: { limit: number; before?: ContextId }): Promise<ContextRow[]>;
  /** Destroys its key and marks every version for removal; false when there was none. */
  destroy(application: ApplicationId, id: ContextId, now: Date): Promise<boolean>;
  /** Newest first. */
  versions(application: ApplicationId, id: ContextId): Promise<VersionRow[]>;
  /**
   * Writes down that objects will be stored under this id; forgotten and removed when it is not kept by then. With
   * `archiveOf` it will have the archive of that version, which from now on is not removed. False: there is no such
   * context, or archive.
   */
  reserve(
    application: ApplicationId,
    context: ContextId,
    version: { id: VersionId; source: VersionSource; archiveOf?: VersionId; now: Date; until: Date },
  ): Promise<boolean>;
  /** Makes it the newest version; with `session` that session's use ends with it. Undefined: there is no such context any more. */
  keep(
    application: ApplicationId,
    context: ContextId,
    wish: KeepVersion,
    session?: { readonly id: SessionId; readonly events: (kept: Kept) => readonly SessionNews[] },
  ): Promise<Kept | undefined>;
  /** It will not be kept: its objects are to be removed. */
  abandon(id: VersionId, now: Date): Promise<void>;
  /** Versions that are to be removed, with the objects that no other version has. */
  removable(now: Date, batch: number): Promise<RemovableVersion[]>;
  /** Their objects are gone. Forgets destroyed contexts too, of which nothing is left. */
  forget(ids: readonly VersionId[]): Promise<void>;
}

export interface RemovableVersion {
  readonly id: VersionId;
  readonly applicationId: ApplicationId;
  readonly contextId: ContextId;
  readonly archiveOf?: VersionId;
  readonly cookiesOf?: VersionId;
}

/** A session that will save into a context when it ends. */
export interface ContextUse {
  readonly sessionId: SessionId;
  readonly contextId: ContextId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly exclusive: boolean;
  /** What it started from; absent while it has not started. */
  readonly fromVersion?: number;
  readonly createdAt: Date;
  /** It has ended, and its save is under way. */
  readonly savingSince?: Date;
  readonly tries: number;
}

export type Opened =
  | { readonly opened: true }
  /** The save of this session is under way. */
  | { readonly saving: SessionId }
  /** This session has it exclusively. */
  | { readonly held: SessionId }
  | { readonly opened: false };

export interface ContextUses {
  /** Writes the use unless a save is under way, or both this one and a standing one are exclusive. */
  open(use: Omit<ContextUse, 'savingSince' | 'tries'>): Promise<Opened>;
  /** Whose save of this context is under way, if any. */
  savingOf(application: ApplicationId, context: ContextId): Promise<SessionId | undefined>;
  started(session: SessionId, fromVersion: number): Promise<void>;
  get(session: SessionId): Promise<ContextUse | undefined>;
  /** The session has ended: from now on its save is due. Idempotent. */
  toSave(session: SessionId, now: Date): Promise<void>;
  /** Nothing will be saved. */
  close(session: SessionId): Promise<void>;
  /** Saves of this host that are due; of each context only the one whose session ended first. */
  due(host: HostId, now: Date, batch: number): Promise<ContextUse[]>;
  retry(session: SessionId, dueAt: Date): Promise<void>;
  /** The save is given up, and the event says why. */
  fail(news: SessionNews): Promise<void>;
  /** Uses of this host whose session has ended, or never came to be, without anybody having said so here. */
  orphans(host: HostId, createdBefore: Date): Promise<SessionId[]>;
  ofHost(host: HostId): Promise<SessionId[]>;
}

// ---- files ---------------------------------------------------------------------------------------------------------

/** A staged file of the host that is to be stored under the key. */
export interface OutboxRow {
  readonly id: string;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly key: string;
  /** Its name in the host's staging folder. */
  readonly staged: string;
  readonly contentType?: string;
  readonly attempts: number;
  readonly dueAt: Date;
  readonly createdAt: Date;
}

export interface OutboxRows {
  add(row: OutboxRow): Promise<void>;
  due(host: HostId, now: Date, batch: number): Promise<OutboxRow[]>;
  /** It failed; counts the attempt. */
  putOff(id: string, dueAt: Date): Promise<void>;
  /** False when it was taken back meanwhile. */
  remove(id: string): Promise<boolean>;
  /** The newest one, should it have been replaced while it waits. */
  byKey(application: ApplicationId, key: string): Promise<OutboxRow | undefined>;
  /** Which of these still wait. */
  waiting(application: ApplicationId, keys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Takes them back. */
  removeKeys(application: ApplicationId, keys: readonly string[]): Promise<OutboxRow[]>;
  /** The keys that wait and begin so. */
  under(application: ApplicationId, prefix: string): Promise<string[]>;
  /** Every staged file that a row of the host names. */
  staged(host: HostId): Promise<ReadonlySet<string>>;
}

export interface UploadRow {
  readonly id: UploadId;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  readonly name: string;
  readonly size: number;
  readonly checksum: string;
  readonly createdAt: Date;
}

export interface UploadRows {
  /** Replaces the one of the same name. Nothing where the session has ended or its end is decided: then undefined. */
  put(row: UploadRow): Promise<UploadRow | undefined>;
  /** In the order in which they came. */
  ofSession(application: ApplicationId, session: SessionId): Promise<UploadRow[]>;
}

/** Only a `complete` one is shown to callers. */
/** `removed` by its owner: the row stays until its session's files go, or the file in the box would be taken in again. */
export type DownloadState = 'running' | 'complete' | 'failed' | 'removed';

export interface DownloadRow {
  readonly id: DownloadId;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  readonly hostId: HostId;
  /** The browser's name for it, and for its file in the box. */
  readonly guid: string;
  readonly state: DownloadState;
  /** As the site named it. */
  readonly filename: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly checksum?: string;
  readonly failure?: string;
  readonly createdAt: Date;
  readonly finishedAt?: Date;
}

export type CompleteDownload = DownloadRow & Required<Pick<DownloadRow, 'mimeType' | 'size' | 'checksum'>>;

export interface DownloadFilter {
  readonly filename?: string;
  readonly mimeType?: string;
  readonly minSize?: number;
  readonly maxSize?: number;
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly limit: number;
  readonly offset: number;
}

export interface DownloadRows {
  /** A download that began; nothing when it is known. */
  begin(row: DownloadRow): Promise<void>;
  /** Ours now, staged: complete, and to be stored. Writes the row where `begin` did not. False when it was over already. */
  complete(row: CompleteDownload, outbox: OutboxRow): Promise<boolean>;
  /** Will never be complete. False when it is, or is known to have failed. */
  fail(session: SessionId, guid: string, failure: string, now: Date): Promise<boolean>;
  /** All there are, whatever became of them. */
  ofSession(session: SessionId): Promise<DownloadRow[]>;
  /** Running ones of sessions of this host that have ended. */
  leftBehind(host: HostId, batch: number): Promise<DownloadRow[]>;
  /** Complete ones, oldest first, and how many match in all. */
  list(
    application: ApplicationId,
    session: SessionId,
    filter: DownloadFilter,
  ): Promise<{ downloads: CompleteDownload[]; total: number }>;
  /** A complete one. */
  get(application: ApplicationId, id: DownloadId): Promise<CompleteDownload | undefined>;
  /** False when there is no complete one. */
  remove(application: ApplicationId, id: DownloadId): Promise<boolean>;
  /** Bytes of its complete downloads. */
  bytesOf(application: ApplicationId, session: SessionId): Promise<number>;
}

export interface StoredBytes {
  /** Complete downloads, uploads of sessions that have not ended, and what versions of contexts unpack to. */
  ofApplication(application: ApplicationId): Promise<number>;
}

export interface ExpiredSession {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly endedAt: Date;
  readonly downloads: number;
  readonly uploads: number;
  readonly bytes: number;
}

export interface RetentionRows {
  /** Ended sessions whose files are due to go. */
  filesDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Their files are gone: forgets the rows that told of them. */
  filesGone(application: ApplicationId, session: SessionId): Promise<void>;
  /** Ended sessions whose row is due to go, and whose files are gone. */
  forgetDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Forgets the session and all rows about it. */
  forget(application: ApplicationId, session: SessionId): Promise<void>;
}

// ---- certificates --------------------------------------------------------------------------------------------------

export interface CertificateRow {
  readonly id: CertificateId;
  readonly applicationId: ApplicationId;
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
  /** The first of them to expire. */
  readonly notAfter: Date;
  readonly createdAt: Date;
}

export interface CertificateRows {
  /** `limit` = most uploads of the application. */
  insert(row: CertificateRow, ders: readonly Buffer[], limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Newest first. */
  list(application: ApplicationId): Promise<CertificateRow[]>;
  get(application: ApplicationId, id: CertificateId): Promise<CertificateRow | undefined>;
  /** The certificates of those uploads that there are, as DER. */
  ders(
    application: ApplicationId,
    ids: readonly CertificateId[],
  ): Promise<ReadonlyMap<CertificateId, readonly Buffer[]>>;
  remove(application: ApplicationId, id: CertificateId): Promise<boolean>;
}

// ---- recordings ----------------------------------------------------------------------------------------------------

/** A page of which something was recorded. */
export interface RecordedPageRow {
  readonly sessionId: SessionId;
  readonly page: number;
  /** When its first frame was seen. */
  readonly startedAt: Date;
  /** All that was recorded is stored, and nothing more comes. */
  readonly stored: boolean;
}

export interface SegmentRow {
  readonly sessionId: SessionId;
  readonly page: number;
  readonly sequence: number;
  /** The run of segments with one init segment. */
  readonly run: number;
  readonly startMs: number;
  readonly durationMs: number;
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
  /** Where in the segment the coded frames begin. */
  readonly payloadAt: number;
  readonly samples: { readonly durationsMs: readonly number[]; readonly sizes: readonly number[] };
}

export interface SpanRow {
  readonly page: number;
  readonly kind: 'hidden' | 'missing';
  readonly fromMs: number;
  /** Missing while it is not over. */
  readonly toMs?: number;
  readonly why?: string;
}

export type OmissionWhy = 'too_many_at_once' | 'too_many_in_all';

/** A page that is not recorded; without a number where it has none. */
export interface OmittedPage {
  readonly why: OmissionWhy;
  readonly targetId: string;
  readonly page?: number;
}

export interface RecordingFileRow {
  readonly sessionId: SessionId;
  readonly page: number;
  readonly hostId: HostId;
  readonly state: 'PENDING' | 'COMPLETED' | 'FAILED';
  readonly assembly: string;
  readonly size?: number;
  readonly attempts: number;
  readonly requestedAt: Date;
  readonly completedAt?: Date;
  readonly failure?: string;
}

/** Whoever asks by session alone has the session's row, read under its application. */
export interface RecordingRows {
  /** What is there already stays. */
  began(session: SessionId, page: number, startedAt: Date): Promise<void>;
  pages(session: SessionId): Promise<RecordedPageRow[]>;
  stored(session: SessionId, page: number): Promise<void>;
  runOf(session: SessionId, page: number, checksum: string): Promise<number | undefined>;
  addRun(session: SessionId, page: number, checksum: string): Promise<number>;
  addSegment(row: SegmentRow): Promise<void>;
  segments(session: SessionId, page: number): Promise<SegmentRow[]>;
  addSpan(session: SessionId, page: number, span: Omit<SpanRow, 'page'>): Promise<void>;
  spans(session: SessionId): Promise<SpanRow[]>;
  /** Those that have no end yet. */
  endSpans(session: SessionId, page: number, atMs: number): Promise<void>;
  /** This page is not recorded, or not yet. */
  omit(session: SessionId, page: OmittedPage): Promise<void>;
  /** Pages of which nothing was recorded, by why. */
  omissions(session: SessionId): Promise<ReadonlyArray<{ readonly why: OmissionWhy; readonly pages: number }>>;
  /** Where the stored part of each page ends. */
  lengths(session: SessionId): Promise<ReadonlyMap<number, number>>;
  /** To be assembled, by this host. One that is whole already stays so. */
  ask(row: Pick<RecordingFileRow, 'sessionId' | 'page' | 'hostId' | 'assembly' | 'requestedAt'>): Promise<void>;
  files(session: SessionId): Promise<RecordingFileRow[]>;
  /** Oldest first. */
  pending(host: HostId, batch: number): Promise<RecordingFileRow[]>;
  settle(row: RecordingFileRow): Promise<void>;
  /** After their artifacts are gone. The pages stay. */
  forget(session: SessionId): Promise<void>;
}

// ---- extensions ----------------------------------------------------------------------------------------------------

export interface ExtensionRow {
  readonly id: ExtensionId;
  readonly applicationId: ApplicationId;
  /** SHA-256 of the package, hex; names its file. */
  readonly checksum: string;
  readonly fileName: string;
  readonly size: number;
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  /** Chromium's id of it, where the package has a key. */
  readonly ownId?: string;
  readonly createdAt: Date;
  readonly usedAt: Date;
}

export interface ExtensionRows {
  /** Says that this file is about to be stored, or used again: it is not dropped before its time. */
  expectFile(application: ApplicationId, checksum: string, now: Date): Promise<void>;
  /** `limit` = most extensions of the application. */
  insert(row: ExtensionRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  get(application: ApplicationId, id: ExtensionId): Promise<ExtensionRow | undefined>;
  /** Those that there are, marked as used now, their files too. */
  use(application: ApplicationId, ids: readonly ExtensionId[], now: Date): Promise<ExtensionRow[]>;
  remove(application: ApplicationId, id: ExtensionId): Promise<boolean>;
  /** Deletes those that nobody has used since; how many, at most `batch`. */
  forget(usedBefore: Date, batch: number): Promise<number>;
  /** Drops one file that no extension needs and nobody has used since; false when there is none. Safe to be killed in. */
  dropFile(usedBefore: Date, remove: (application: ApplicationId, checksum: string) => Promise<void>): Promise<boolean>;
}

// ---- logs ----------------------------------------------------------------------------------------------------------

/** How much of each kind of entry there is. */
export type LogKinds = Readonly<Record<string, { readonly entries: number; readonly bytes: number }>>;

/** Entries of a session's log that follow each other without a gap, one a line. */
export interface LogChunk {
  /** Sequence number of the first line. */
  readonly first: number;
  readonly lines: readonly string[];
  readonly kinds: LogKinds;
}

export interface LogStanding {
  readonly last: number;
  readonly written: Date;
  /** Of the whole log. */
  readonly kinds: LogKinds;
  /** Those of the last chunk. */
  readonly lines: readonly string[];
}

export interface LogRows {
  /** A chunk that begins where one stands replaces it. */
  write(application: ApplicationId, session: SessionId, chunks: readonly LogChunk[], now: Date): Promise<void>;
  /** Chunks with lines behind `after`, oldest first; with `kinds` only those that have some of these. */
  read(
    application: ApplicationId,
    session: SessionId,
    page: { readonly after: number; readonly kinds?: readonly string[]; readonly limit: number },
  ): Promise<readonly LogChunk[]>;
  /** Where a log stands that somebody else began; undefined where there is none. */
  last(application: ApplicationId, session: SessionId): Promise<LogStanding | undefined>;
  /** Forgets the logs of sessions that ended before this; how many sessions those were, at most `batch`. */
  forget(endedBefore: Date, batch: number): Promise<number>;
}

// ---- pages ---------------------------------------------------------------------------------------------------------

/** A page of a session under the number that it has for ever. */
export interface PageRow {
  readonly number: number;
  /** What the browser calls it. */
  readonly targetId: string;
  readonly appearedAt: Date;
}

export interface PageRows {
  /** By number. */
  list(application: ApplicationId, session: SessionId): Promise<readonly PageRow[]>;
  /** What stands stays. */
  add(application: ApplicationId, session: SessionId, pages: readonly PageRow[]): Promise<void>;
}
