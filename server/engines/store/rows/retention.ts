// How much is stored, and what is due for deletion.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

export interface StoredBytes {
  /**
   * The size of complete downloads, of uploads of sessions that have not ended, and of the unpacked versions of
   * contexts.
   */
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
  /** The application of a session whose files are not due for deletion. Also undefined if the session was deleted. */
  applicationKeeping(session: SessionId, now: Date): Promise<ApplicationId | undefined>;
  /** Ended sessions whose files are due for deletion. */
  filesDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Deletes the rows about files that were deleted. */
  filesGone(application: ApplicationId, session: SessionId): Promise<void>;
  /** Ended sessions whose files are deleted and whose row is due for deletion. */
  forgetDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Deletes the session and all rows about it. */
  forget(application: ApplicationId, session: SessionId): Promise<void>;
}
