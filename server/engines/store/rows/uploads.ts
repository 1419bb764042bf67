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
  /** Replaces the upload of the same name. Undefined if the session has ended or its end is decided. */
  put(row: UploadRow): Promise<UploadRow | undefined>;
  /** In the order in which they were uploaded. */
  ofSession(application: ApplicationId, session: SessionId): Promise<UploadRow[]>;
}
