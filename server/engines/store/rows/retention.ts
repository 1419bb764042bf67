// How much is kept, and until when.
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
  /** Ended sessions whose files are due to go. */
  filesDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Their files are gone: forgets the rows that told of them. */
  filesGone(application: ApplicationId, session: SessionId): Promise<void>;
  /** Ended sessions whose row is due to go, and whose files are gone. */
  forgetDue(now: Date, batch: number): Promise<ExpiredSession[]>;
  /** Forgets the session and all rows about it. */
  forget(application: ApplicationId, session: SessionId): Promise<void>;
}
