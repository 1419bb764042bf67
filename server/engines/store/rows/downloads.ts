// Files that browsers downloaded.
import type { ApplicationId, DownloadId, HostId, SessionId } from '../../../kit/ids.ts';
import type { Actor } from './events.ts';
import type { OutboxRow } from './outbox.ts';

/**
 * `removed`: deleted by a caller. The row stays until the session's files are removed, so that the file in the box is
 * not collected again.
 */
export type DownloadState = 'running' | 'complete' | 'failed' | 'removed';

export interface DownloadRow {
  readonly id: DownloadId;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  readonly hostId: HostId;
  /** The browser's identifier for the download. It is also the name of the file in the box. */
  readonly guid: string;
  readonly state: DownloadState;
  /** The file name that the site suggested. */
  readonly filename: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly checksum?: string;
  readonly failure?: string;
  readonly createdAt: Date;
  readonly finishedAt?: Date;
}

export type CompleteDownload = DownloadRow & Required<Pick<DownloadRow, 'mimeType' | 'size' | 'checksum'>>;
export type FinishedDownload = CompleteDownload & Required<Pick<DownloadRow, 'finishedAt'>>;

export interface UsedBytes {
  /** The total size of the session's complete downloads. */
  readonly session: number;
  /** The bytes that count towards the limit of the application: see `StoredBytes`. */
  readonly application: number;
}

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
  /** Inserts a download that has started. Does nothing if the row exists. */
  begin(row: DownloadRow): Promise<void>;
  /**
   * Marks the download as complete: its file is staged and will be stored. Inserts the row if `begin` was not called.
   * Records `download.completed`, even if the session has ended. False if the download had already ended. Changes
   * nothing if `assertRoom` throws.
   */
  complete(
    row: FinishedDownload,
    outbox: OutboxRow,
    actor: Actor,
    assertRoom: (used: UsedBytes) => void,
  ): Promise<boolean>;
  /**
   * Marks the download as failed, and records `download.failed`, even if the session has ended. False if the download
   * had already ended.
   */
  fail(session: SessionId, guid: string, failure: string, now: Date, actor: Actor): Promise<boolean>;
  /** All downloads of the session, in every state. */
  ofSession(session: SessionId): Promise<DownloadRow[]>;
  /** Running downloads whose session on this host has ended. */
  listOrphaned(host: HostId, batchSize: number): Promise<DownloadRow[]>;
  /** Returns complete downloads, oldest first, and the total number of downloads that match. */
  list(
    application: ApplicationId,
    session: SessionId,
    filter: DownloadFilter,
  ): Promise<{ downloads: CompleteDownload[]; total: number }>;
  /** Returns a complete download. */
  get(application: ApplicationId, id: DownloadId): Promise<CompleteDownload | undefined>;
  /** False if there is no complete download with this id. */
  remove(application: ApplicationId, id: DownloadId): Promise<boolean>;
  usedBytes(application: ApplicationId, session: SessionId): Promise<UsedBytes>;
}
