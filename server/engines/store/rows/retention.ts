// The stored bytes of applications, and the sessions whose files or rows are due for deletion.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

export interface StoredBytes {
  /**
   * The total size of complete downloads, of uploads to sessions that have not ended, of the unpacked versions of
   * contexts, and of the output files of invocations.
   */
  ofApplication(application: ApplicationId): Promise<number>;
}

export interface SessionDueForDeletion {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly endedAt: Date;
  readonly downloads: number;
  readonly uploads: number;
  readonly bytes: number;
}

export interface RetentionRows {
  /**
   * Returns the application of the session. Undefined if the session's files are due for deletion, or if the session
   * was deleted.
   */
  applicationIfKept(session: SessionId, now: Date): Promise<ApplicationId | undefined>;
  /** Ended sessions whose files are due for deletion. */
  listFilesDue(now: Date, batchSize: number): Promise<SessionDueForDeletion[]>;
  /** Deletes the rows about the session's files. Call after deleting the files. */
  forgetFiles(application: ApplicationId, session: SessionId): Promise<void>;
  /** Ended sessions whose files are deleted and whose row is due for deletion. */
  listRowsDue(now: Date, batchSize: number): Promise<SessionDueForDeletion[]>;
  /** Deletes the session and all rows about it. */
  forget(application: ApplicationId, session: SessionId): Promise<void>;
}
