// Follows the downloads of one running session and copies each complete file out of the box. The content of the box is
// hostile input. A file stays in the box until it has been copied, so an interrupted copy can be repeated.

import type { DownloadListener } from '../../engines/browser/download-events.ts';
import type { CompleteDownload, DownloadRow } from '../../engines/store/rows/downloads.ts';
import { hasCode } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { NotAPlainFile, openHostileFile } from '../../kit/hostile-file.ts';
import { type DownloadId, newId } from '../../kit/ids.ts';
import type { LiveSession } from '../sessions/live.ts';
import { type DownloadKeeper, LimitExceeded, overSessionLimit } from './download-keeper.ts';
import { downloadName } from './file-names.ts';

/** Maximum number of downloads per session. Further downloads are cancelled, and only the first of them is reported. */
export const DOWNLOADS_MAX = 10_000;
const TOO_MANY_DOWNLOADS = `the session has reached its limit of ${DOWNLOADS_MAX} downloads; further downloads are cancelled and not reported`;
const RETRY_INTERVAL_MS = 2_000;
/**
 * If less space than this is free, the disk counts as full. Chromium stops downloads at about 16 MiB of free space, and
 * other processes write at the same time.
 */
const FREE_BYTES_MIN = 64 * 1024 ** 2;
const DISK_FULL_REASON = 'the disk is full';
const INTERRUPTED_REASON = 'it was cancelled or interrupted';
/**
 * How often the folder is polled for downloads that began before an adoption. Chromium sends no further events for such
 * downloads.
 */
const FOLDER_POLL_INTERVAL_MS = 1_000;
/**
 * A file can be missed while Chromium renames it, so it counts as absent only after it has been missed this many times.
 */
const MISSES_BEFORE_ABSENT = 2;
/**
 * How many times the folder is searched for files of downloads that began while no server was connected. Such a file
 * may appear after a short delay.
 */
const UNOBSERVED_SEARCHES = 5;

interface WatchedDownload {
  readonly row: DownloadRow;
  /** Id of the frame that started the download. Empty if the frame is unknown. */
  readonly frame: string;
  /** The Content-Type that the site sent, if it was observed. */
  readonly mimeType: string | undefined;
  receivedBytes: number;
  hasEnded: boolean;
}

export class DownloadWatch implements DownloadListener {
  readonly #keeper: DownloadKeeper;
  readonly #liveSession: LiveSession;
  readonly #watchedDownloads = new Map<string, WatchedDownload>();
  readonly #pendingWork = new Set<Promise<void>>();
  readonly #leaveController = new AbortController();
  #keptBytes = 0;

  constructor(keeper: DownloadKeeper, liveSession: LiveSession) {
    this.#keeper = keeper;
    this.#liveSession = liveSession;
  }

  began({ guid, url, suggestedName, frame }: Parameters<DownloadListener['began']>[0]): void {
    if (this.#watchedDownloads.has(guid)) return;
    const isBeyondLimit = this.#watchedDownloads.size >= DOWNLOADS_MAX;
    if (isBeyondLimit) void this.#liveSession.browser.cancelDownload(guid).catch(() => {});
    if (this.#watchedDownloads.size > DOWNLOADS_MAX) return;
    const watchedDownload = this.#remember(
      guid,
      downloadName(suggestedName),
      frame,
      this.#liveSession.responseTypes.of(url),
    );
    if (isBeyondLimit) {
      watchedDownload.hasEnded = true;
      return this.#retryUntilDone(() => this.#fail(watchedDownload, TOO_MANY_DOWNLOADS));
    }
    this.#retryUntilDone(() => this.#keeper.parts.rows.begin(watchedDownload.row));
  }

  progressed({ guid, state, receivedBytes, totalBytes }: Parameters<DownloadListener['progressed']>[0]): void {
    const watchedDownload = this.#watchedDownloads.get(guid);
    if (!watchedDownload || watchedDownload.hasEnded) return;
    watchedDownload.receivedBytes = Math.max(receivedBytes, watchedDownload.receivedBytes);
    if (state === 'inProgress') return this.#enforceLimit(watchedDownload);
    watchedDownload.hasEnded = true;
    if (state === 'completed') this.#retryUntilDone(() => this.#takeFile(watchedDownload));
    else this.#onInterrupted(watchedDownload, totalBytes);
  }

  /** Continues downloads that began before an adoption, and finds downloads that no server observed. */
  async resume(): Promise<void> {
    const rows = await this.#keeper.parts.rows.ofSession(this.#liveSession.id);
    for (const row of rows) {
      this.#watchedDownloads.set(row.guid, {
        row,
        frame: '',
        mimeType: undefined,
        receivedBytes: 0,
        hasEnded: row.state !== 'running',
      });
      if (row.state === 'complete') this.#keptBytes += row.size ?? 0;
    }
    const unfinishedDownloads = [...this.#watchedDownloads.values()].filter(({ hasEnded }) => !hasEnded);
    for (const watchedDownload of unfinishedDownloads) this.#retryUntilDone(() => this.#awaitFile(watchedDownload));
    this.#retryUntilDone(() => this.#findUnobservedDownloads());
  }

  /** Abandons copies in progress. Their files are still in the box. */
  async leave(): Promise<void> {
    this.#leaveController.abort(new Error('the download watch is stopping'));
    await Promise.all(this.#pendingWork);
  }

  #remember(guid: string, name: string, frame = '', mimeType?: string): WatchedDownload {
    const { host, clock } = this.#keeper.parts;
    const now = clock.now();
    const { id: sessionId, applicationId, secrets } = this.#liveSession;
    const filename = secrets.clean(name);
    const identifyingFields = { id: newId<DownloadId>(now), applicationId, sessionId, hostId: host, guid, filename };
    const row: DownloadRow = { ...identifyingFields, state: 'running', createdAt: now };
    const watchedDownload: WatchedDownload = { row, frame, mimeType, receivedBytes: 0, hasEnded: false };
    this.#watchedDownloads.set(guid, watchedDownload);
    return watchedDownload;
  }

  /**
   * Retries until the step succeeds or this process leaves the session. The database may be down, but the file is safe
   * in the box.
   */
  #retryUntilDone(step: () => Promise<void>): void {
    const { clock, log } = this.#keeper.parts;
    const { signal } = this.#leaveController;
    const run = async (): Promise<void> => {
      while (!signal.aborted)
        try {
          return await step();
        } catch (error) {
          if (signal.aborted) return;
          log.warn('download.retried', { sessionId: this.#liveSession.id, reason: reason(error) });
          await clock.sleep(RETRY_INTERVAL_MS, signal).catch(() => {});
        }
    };
    const work = run().finally(() => this.#pendingWork.delete(work));
    this.#pendingWork.add(work);
  }

  /**
   * Cancels the download if the session exceeds its limit. The bytes that unfinished downloads have received so far are
   * included.
   */
  #enforceLimit(watchedDownload: WatchedDownload): void {
    let bytes = this.#keptBytes;
    for (const { receivedBytes, hasEnded } of this.#watchedDownloads.values()) if (!hasEnded) bytes += receivedBytes;
    if (bytes <= this.#keeper.parts.sessionBytesMax) return;
    watchedDownload.hasEnded = true;
    this.#retryUntilDone(async () => {
      await this.#liveSession.browser.cancelDownload(watchedDownload.row.guid);
      await this.#fail(watchedDownload, overSessionLimit(this.#keeper.parts.sessionBytesMax));
    });
  }

  /**
   * Finds downloads that no server observed. A file must be found twice, because the event of the browser may arrive
   * shortly after the first search.
   */
  async #findUnobservedDownloads(): Promise<void> {
    const { keeper, live: liveSession } = { keeper: this.#keeper, live: this.#liveSession };
    let previousGuids = new Set<string>();
    for (let search = 0; search < UNOBSERVED_SEARCHES; search++) {
      if (search > 0) await keeper.parts.clock.sleep(FOLDER_POLL_INTERVAL_MS, this.#leaveController.signal);
      const seenGuids = new Set(await keeper.listGuids(liveSession.box.folder));
      for (const guid of seenGuids) {
        if (
          !previousGuids.has(guid) ||
          this.#watchedDownloads.has(guid) ||
          this.#watchedDownloads.size >= DOWNLOADS_MAX
        )
          continue;
        const watchedDownload = this.#remember(guid, downloadName(''));
        this.#retryUntilDone(() => this.#awaitFile(watchedDownload));
      }
      previousGuids = seenGuids;
    }
  }

  /**
   * Marks an interrupted download as failed. The reason is determined at once, while the free space is still unchanged,
   * and stored as soon as the database responds.
   */
  #onInterrupted(watchedDownload: WatchedDownload, totalBytes: number): void {
    const failureReason = this.#reasonOfInterruption(watchedDownload, totalBytes);
    this.#retryUntilDone(async () => this.#fail(watchedDownload, await failureReason));
  }

  /**
   * Returns the reason for an interruption. Chromium reports none, so the free space is checked. The space that
   * Chromium freed by deleting the file counts as occupied at the time of the interruption.
   */
  async #reasonOfInterruption({ row, receivedBytes }: WatchedDownload, totalBytes: number): Promise<string> {
    const { keeper, live: liveSession } = { keeper: this.#keeper, live: this.#liveSession };
    try {
      // The order matters: a file that is still present after the measurement was also present during the measurement.
      const availableBytes = await keeper.parts.staging.freeBytes();
      const fileState = await keeper.readFileState(liveSession.box.folder, row.guid);
      keeper.parts.log.info('download.broke_off', {
        sessionId: liveSession.id,
        free: availableBytes,
        seen: fileState,
        receivedBytes,
        totalBytes,
      });
      const freeBytesBeforeRemoval = availableBytes - (fileState === 'absent' ? receivedBytes : 0);
      return freeBytesBeforeRemoval < Math.max(FREE_BYTES_MIN, totalBytes - receivedBytes)
        ? DISK_FULL_REASON
        : INTERRUPTED_REASON;
    } catch {
      return INTERRUPTED_REASON;
    }
  }

  async #awaitFile(watchedDownload: WatchedDownload): Promise<void> {
    const { keeper, live: liveSession } = { keeper: this.#keeper, live: this.#liveSession };
    let absentCount = 0;
    while (!watchedDownload.hasEnded) {
      const fileState = await keeper.readFileState(liveSession.box.folder, watchedDownload.row.guid);
      if (fileState === 'partial')
        await keeper.parts.clock.sleep(FOLDER_POLL_INTERVAL_MS, this.#leaveController.signal);
      else if (fileState === 'whole') watchedDownload.hasEnded = true;
      else if (++absentCount === MISSES_BEFORE_ABSENT) {
        watchedDownload.hasEnded = true;
        return this.#fail(watchedDownload, INTERRUPTED_REASON);
      }
    }
    return this.#takeFile(watchedDownload);
  }

  async #takeFile(watchedDownload: WatchedDownload): Promise<void> {
    try {
      const keptDownload = await this.#keep(watchedDownload);
      if (!keptDownload) return;
      this.#keptBytes += keptDownload.size;
      this.#keeper.parts.onKept(keptDownload, watchedDownload.frame);
    } catch (error) {
      const failure = this.#leaveController.signal.aborted ? undefined : permanentFailure(error);
      if (failure === undefined) throw error;
      await this.#fail(watchedDownload, failure);
    }
  }

  async #keep({ row, mimeType }: WatchedDownload): Promise<CompleteDownload | undefined> {
    const { keeper, live: liveSession } = { keeper: this.#keeper, live: this.#liveSession };
    const pathParts = [keeper.parts.downloadsFolder, row.guid] as const;
    const file = await openHostileFile(liveSession.box.folder, [...pathParts], { uid: liveSession.box.uid });
    if (!file) throw new NotAPlainFile('the file does not exist');
    try {
      const { size } = await file.stat();
      await keeper.assertRoomFor(row, size);
      return await keeper.keepCopy(row, file, { bytes: size, mimeType }, this.#leaveController.signal);
    } finally {
      await file.close();
    }
  }

  async #fail({ row }: Pick<WatchedDownload, 'row'>, failure: string): Promise<void> {
    const { rows, clock } = this.#keeper.parts;
    await rows.begin(row);
    await rows.fail(row.sessionId, row.guid, failure, clock.now(), { kind: 'browser' });
  }
}

/** Returns why the file can never be stored. Undefined if a retry may help. */
function permanentFailure(error: unknown): string | undefined {
  if (error instanceof NotAPlainFile) return `its file cannot be stored: ${error.message}`;
  if (error instanceof LimitExceeded) return error.message;
  if (hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT')) return DISK_FULL_REASON;
  return undefined;
}
