// Contexts, their versions, and who uses them.
import type { ApplicationId, ContextId, HostId, SessionId, VersionId } from '../../../kit/ids.ts';
import type { NamedEvent } from './events.ts';

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

/** A stored object: the version whose id names it, and the SHA-256 of its bytes. */
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
  /** The version whose id names them. */
  readonly cookiesOf?: VersionId;
}

export interface VersionRow extends VersionFacts {
  readonly id: VersionId;
  readonly version: number;
  readonly createdAt: Date;
  /** Of an earlier version: when it is removed. */
  readonly expiresAt?: Date;
}

/** An event of another session. */
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

/** Destroyed contexts and those of other applications are not found. */
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
    request: KeepVersion,
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
  /** Set once it has ended and its save is running. */
  readonly savingSince?: Date;
  readonly tries: number;
}

export type Opened =
  | { readonly opened: true }
  /** The save of this session is running. */
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
