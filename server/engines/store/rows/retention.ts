// How much is stored, and what is due for deletion.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

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
  /** Ended sessions whose files are due for deletion. */
  filesDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** The files are deleted: deletes their rows. */
  filesGone(application: ApplicationId, session: SessionId): Promise<void>;
  /** Ended sessions whose row is due for deletion, and whose files are deleted. */
  forgetDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Deletes the session and all rows about it. */
  forget(application: ApplicationId, session: SessionId): Promise<void>;
}
