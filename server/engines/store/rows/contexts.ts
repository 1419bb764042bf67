// Contexts, their versions, and the sessions that use them.
import type { ApplicationId, ContextId, HostId, SessionId, VersionId } from '../../../kit/ids.ts';
import type { NamedEvent } from './events.ts';

export interface ContextRow {
  readonly id: ContextId;
  readonly applicationId: ApplicationId;
  readonly name?: string;
  /**
   * The context's data key, sealed by the vault. A key that was stored before the vault existed is sealed with the
   * installation's secret.
   */
  readonly wrappedKey: Buffer;
  /** 0: nothing has been saved yet. */
  readonly version: number;
  readonly sizeBytes: number;
  readonly lastSessionId?: SessionId;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewContext = Pick<ContextRow, 'id' | 'applicationId' | 'name' | 'wrappedKey' | 'createdAt'>;

export type VersionSource = 'session' | 'restore' | 'fork' | 'import';

/** A stored object: the version under whose id it is stored, and the SHA-256 of its bytes. */
export interface StoredArchive {
  readonly versionId: VersionId;
  readonly checksum: Buffer;
}

/** The origin, the parts and the size of a version. */
export interface VersionFacts {
  readonly source: VersionSource;
  readonly sessionId?: SessionId;
  readonly partial: boolean;
  readonly sizeBytes: number;
  readonly archive?: StoredArchive;
  /** The version under whose id the cookies are stored. */
  readonly cookiesOf?: VersionId;
}

export interface VersionRow extends VersionFacts {
  readonly id: VersionId;
  readonly version: number;
  readonly createdAt: Date;
  /** When the version is removed. Absent for the newest version. */
  readonly expiresAt?: Date;
}

/** An event, and the session to which it is appended. */
export interface AddressedEvent extends NamedEvent {
  readonly session: SessionId;
}

export interface KeepVersionRequest {
  readonly id: VersionId;
  readonly facts: VersionFacts;
  readonly now: Date;
  /** How many earlier versions are kept, and until when. */
  readonly earlierVersions: { readonly max: number; readonly until: Date };
}

export interface KeptVersion {
  readonly context: ContextRow;
  /** The version that was the newest before this one, if the session did not start from it. */
  readonly overtakenVersion?: VersionRow;
}

/** Destroyed contexts and contexts of other applications are not found. */
export interface ContextRows {
  insert(row: NewContext, limit: number): Promise<'inserted' | 'name_taken' | 'limit_reached'>;
  get(application: ApplicationId, id: ContextId): Promise<ContextRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, page: { limit: number; before?: ContextId }): Promise<ContextRow[]>;
  /** Destroys the context's key and marks every version for removal. False if there is no such context. */
  destroy(application: ApplicationId, id: ContextId, now: Date): Promise<boolean>;
  /** Newest first. */
  versions(application: ApplicationId, id: ContextId): Promise<VersionRow[]>;
  /**
   * Inserts a row before objects are stored under the version's id. If `keep` is not called before `until`, the objects
   * are removed. With `archiveOf`, the new version shares the archive of that version, so that the archive is not
   * removed. False if the context or the archive does not exist.
   */
  reserve(
    application: ApplicationId,
    context: ContextId,
    version: { id: VersionId; source: VersionSource; archiveOf?: VersionId; now: Date; until: Date },
  ): Promise<boolean>;
  /**
   * Makes a reserved version the newest version. With `session`, the same transaction ends the session's use of the
   * context. Undefined if the context no longer exists.
   */
  keep(
    application: ApplicationId,
    context: ContextId,
    request: KeepVersionRequest,
    session?: { readonly id: SessionId; readonly events: (kept: KeptVersion) => readonly AddressedEvent[] },
  ): Promise<KeptVersion | undefined>;
  /** Marks the objects of the version for removal, because it will not be kept. */
  abandon(id: VersionId, now: Date): Promise<void>;
  /** Returns versions that are due for removal, each with those of its objects that no other version shares. */
  takeRemovable(now: Date, batchSize: number): Promise<RemovableVersion[]>;
  /**
   * Deletes the rows of versions whose objects have been deleted, and the rows of destroyed contexts that have no
   * versions left.
   */
  forget(ids: readonly VersionId[]): Promise<void>;
}

export interface RemovableVersion {
  readonly id: VersionId;
  readonly applicationId: ApplicationId;
  readonly contextId: ContextId;
  readonly archiveOf?: VersionId;
  readonly cookiesOf?: VersionId;
}

/** The use of a context by a session that will save into it when the session ends. */
export interface ContextUse {
  readonly sessionId: SessionId;
  readonly contextId: ContextId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly exclusive: boolean;
  /** The version that the session started from. Absent until the session has started. */
  readonly fromVersion?: number;
  readonly createdAt: Date;
  /** The time since which the save has been due or in progress. */
  readonly savingSince?: Date;
  readonly tries: number;
}

export type OpenOutcome =
  | { readonly opened: true }
  /** A save by this session is due or in progress. */
  | { readonly savingSession: SessionId }
  /** This session uses the context exclusively. */
  | { readonly exclusiveSession: SessionId }
  /** There is no such context. */
  | { readonly opened: false };

export interface ContextUses {
  /** Inserts the use unless a save is due or in progress, or both this use and an existing one are exclusive. */
  open(use: Omit<ContextUse, 'savingSince' | 'tries'>): Promise<OpenOutcome>;
  /** The session whose save into this context is due or in progress, if any. */
  savingSessionOf(application: ApplicationId, context: ContextId): Promise<SessionId | undefined>;
  recordStart(session: SessionId, fromVersion: number): Promise<void>;
  get(session: SessionId): Promise<ContextUse | undefined>;
  /** Marks the save as due, because the session has ended. Idempotent. */
  markForSaving(session: SessionId, now: Date): Promise<void>;
  /** Ends the use without a save. */
  close(session: SessionId): Promise<void>;
  /**
   * Returns saves of this host that are due. If several sessions are waiting to save into a context, returns only the
   * save by the session that ended first.
   */
  due(host: HostId, now: Date, batchSize: number): Promise<ContextUse[]>;
  retry(session: SessionId, dueAt: Date): Promise<void>;
  /** Gives up the save and appends an event with the reason. */
  fail(failureEvent: AddressedEvent): Promise<void>;
  /**
   * Returns uses on this host whose session has ended or was never created, and for which no save is due or in
   * progress.
   */
  orphans(host: HostId, createdBefore: Date): Promise<SessionId[]>;
  ofHost(host: HostId): Promise<SessionId[]>;
}
