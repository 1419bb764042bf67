// Files that were uploaded into sessions.
import type { ApplicationId, SessionId, UploadId } from '../../../kit/ids.ts';

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
