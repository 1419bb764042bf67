// Waits for the files that a page downloads during a call. The files are kept with the session like its other
// downloads. This module detects them, and waits until each one is complete.
import type { InvocationError } from '../../../contract/invocations.ts';
import type { DownloadRow, DownloadRows } from '../../engines/store/rows/downloads.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';

const POLL_INTERVAL_MS = 100;
/**
 * A page may start several downloads one after the other. When no new download has started for this long, the wait for
 * further downloads ends.
 */
const QUIET_PERIOD_MS = 500;
/** Maximum number of files per call. */
export const DOWNLOADS_MAX = 100;
const NAME_CHARACTERS_MAX = 100;

export interface AwaitedDownloadsParts {
  readonly rows: Pick<DownloadRows, 'ofSession'>;
  readonly clock: Clock;
  /** Throws if the session is no longer running. */
  readonly assertRunning: (session: SessionId) => Promise<void>;
}

export interface DownloadWait {
  readonly session: SessionId;
  /** When the wait for the files ends, on the monotonic clock. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

/** `failed` is the error of the wait. It is returned unless every file is complete. */
export type DownloadsOutcome =
  | { readonly files: readonly JsonObject[] }
  | { readonly failed: Pick<InvocationError, 'code' | 'message'> };

export class AwaitedDownloads {
  readonly #parts: AwaitedDownloadsParts;
  /** The GUIDs of the downloads that later calls of `next` ignore. */
  readonly #knownIds: Set<string>;

  private constructor(parts: AwaitedDownloadsParts, knownIds: Set<string>) {
    this.#parts = parts;
    this.#knownIds = knownIds;
  }

  /** Follows the downloads that begin from now on. */
  static async from(parts: AwaitedDownloadsParts, session: SessionId): Promise<AwaitedDownloads> {
    const rowsBefore = await parts.rows.ofSession(session);
    return new AwaitedDownloads(parts, new Set(rowsBefore.map(({ guid }) => guid)));
  }

  /**
   * Waits for the downloads that began since the previous call. Resolves with their files when there is at least one,
   * all are complete, and either no new download has begun for `QUIET_PERIOD_MS` or the time is up. Resolves with an
   * error if a download fails, if there are too many, or if the time is up before all are complete.
   */
  async next({ session, untilMs, signal }: DownloadWait): Promise<DownloadsOutcome> {
    const { rows, clock, assertRunning } = this.#parts;
    let previousRows: readonly DownloadRow[] = [];
    let quietSinceMs = clock.monotonicMs();
    for (;;) {
      const newRows = (await rows.ofSession(session)).filter(({ guid }) => !this.#knownIds.has(guid));
      const nowMs = clock.monotonicMs();
      if (newRows.length > DOWNLOADS_MAX)
        return failedOutcome(
          'not_possible',
          `The call began more than ${DOWNLOADS_MAX} downloads, the maximum for one call.`,
        );
      const failedRow = newRows.find(({ state }) => state === 'failed' || state === 'removed');
      if (failedRow)
        return failedOutcome(
          'download_failed',
          `The download of ${quotedName(failedRow)} failed: ${failureReason(failedRow)}.`,
        );
      if (newRows.length > previousRows.length) quietSinceMs = nowMs;
      previousRows = newRows;
      const areAllComplete = newRows.length > 0 && newRows.every(({ state }) => state === 'complete');
      if (areAllComplete && (nowMs - quietSinceMs >= QUIET_PERIOD_MS || nowMs >= untilMs))
        return this.#takeArrived(newRows);
      if (nowMs >= untilMs) return failedOutcome('timeout', timeoutMessage(newRows));
      if (newRows.length === 0) await assertRunning(session);
      await clock.sleep(POLL_INTERVAL_MS, signal);
    }
  }

  #takeArrived(arrivedRows: readonly DownloadRow[]): DownloadsOutcome {
    for (const { guid } of arrivedRows) this.#knownIds.add(guid);
    return { files: arrivedRows.map(toJson) };
  }
}

/**
 * Describes a file for the output. The description contains no links, because new links are made whenever the output is
 * shown.
 */
const toJson = ({ id, sessionId, filename, mimeType, size, checksum, createdAt }: DownloadRow): JsonObject => ({
  ...{ id, sessionId, filename, mimeType: mimeType ?? null, size: size ?? null, checksum: checksum ?? null },
  createdAt: createdAt.toISOString(),
});

const failedOutcome = (code: string, message: string): DownloadsOutcome => ({ failed: { code, message } });

const quotedName = ({ filename }: DownloadRow): string => JSON.stringify(filename.slice(0, NAME_CHARACTERS_MAX));

const failureReason = ({ failure, state }: DownloadRow): string =>
  failure ?? (state === 'removed' ? 'it was deleted' : 'it was interrupted');

function timeoutMessage(arrivedRows: readonly DownloadRow[]): string {
  const runningRows = arrivedRows.filter(({ state }) => state === 'running');
  if (arrivedRows.length === 0) return 'No download began within the time limit of the call.';
  return `Only ${arrivedRows.length - runningRows.length} of ${arrivedRows.length} downloads were complete within the time limit of the call. Still running: ${runningRows.map(quotedName).join(', ').slice(0, 500)}.`;
}
