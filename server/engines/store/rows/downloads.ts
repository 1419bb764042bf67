// Files that browsers downloaded.
import type { ApplicationId, DownloadId, HostId, SessionId } from '../../../kit/ids.ts';
import type { OutboxRow } from './outbox.ts';

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
