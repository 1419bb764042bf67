// Moves files from local disk to the artifact store. A file is staged and recorded in a row, and the caller continues.
// A task then moves the files that the rows list. The task retries until a file has been moved, and continues after a
// restart, so a file is stored even if the store is unavailable for a long time or this process is killed.
import type { Artifacts, ByteRange, OpenedArtifact } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { Staging } from '../../engines/artifacts/staging.ts';
import type { OutboxRow, OutboxRows } from '../../engines/store/rows/outbox.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { type ApplicationId, newId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';

const UPLOADS_AT_ONCE_MAX = 4;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** Maximum time to wait on shutdown until the aborted uploads have stopped. The next process repeats these uploads. */
const CLOSE_WAIT_MAX_MS = 5_000;

export interface OutboxParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: OutboxRows;
  readonly artifacts: Artifacts;
  readonly staging: Staging;
  /** Wakes the task, because a file is due. */
  readonly trigger: () => void;
}

export interface OutboxFile {
  readonly key: ArtifactKey;
  /** Name of the file in the staging folder. */
  readonly staged: string;
  readonly contentType?: string;
}

export class Outbox implements Closeable {
  readonly #parts: OutboxParts;
  readonly #runningUploads = new Map<string, { readonly key: ArtifactKey; readonly done: Promise<void> }>();
  readonly #closeController = new AbortController();
  #storedCount = 0;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Takes ownership of all staged files, or of none if it fails. On success, each file can be opened under its key. */
  async post(application: ApplicationId, ...outboxFiles: readonly OutboxFile[]): Promise<void> {
    if (outboxFiles.length === 0) return;
    await this.#parts.rows.add(outboxFiles.map(outboxFile => this.row(application, outboxFile)));
    this.#parts.trigger();
  }

  /**
   * Returns the row for a file. The caller inserts the row in its own transaction, and calls `trigger` after the commit.
   */
  row(applicationId: ApplicationId, outboxFile: OutboxFile): OutboxRow {
    const { host, clock } = this.#parts;
    const now = clock.now();
    return { id: newId(now), applicationId, hostId: host, ...outboxFile, attempts: 0, dueAt: now, createdAt: now };
  }

  trigger(): void {
    this.#parts.trigger();
  }

  /** Opens the file, whether it is already stored or still staged. */
  async open(application: ApplicationId, key: ArtifactKey, range?: ByteRange): Promise<OpenedArtifact | undefined> {
    const { rows, artifacts, staging } = this.#parts;
    const waitingRow = await rows.byKey(application, key);
    const stagedFile = waitingRow && (await staging.open(waitingRow.staged, range));
    return stagedFile ?? artifacts.open(key, range);
  }

  /** Returns the keys whose files the store does not have yet. Only this service can serve these files. */
  waiting(application: ApplicationId, keys: readonly ArtifactKey[]): Promise<ReadonlySet<string>> {
    return this.#parts.rows.waitingKeys(application, keys);
  }

  /** Removes the files, whether they are stored or staged. */
  async remove(application: ApplicationId, keys: readonly ArtifactKey[]): Promise<void> {
    const { rows, artifacts, staging } = this.#parts;
    const removedRows = await rows.removeKeys(application, keys);
    for (const { staged } of removedRows) await staging.remove(staged);
    const uploadsOfKeys = [...this.#runningUploads.values()].filter(({ key }) => keys.includes(key));
    await Promise.all(uploadsOfKeys.map(({ done }) => done));
    await artifacts.remove(keys);
  }

  /**
   * Starts to store the files that are due. Must not be called while an earlier call is running. Resolves to the number
   * of files stored since the last call.
   */
  async reconcile(): Promise<{ stored: number }> {
    const { rows, host, clock } = this.#parts;
    // An upload that ends while the rows are read must not begin again.
    const runningBefore = new Set(this.#runningUploads.keys());
    const dueRows = await rows.due(host, clock.now(), UPLOADS_AT_ONCE_MAX + this.#runningUploads.size);
    for (const row of dueRows.filter(({ id }) => !runningBefore.has(id)))
      if (this.#runningUploads.size < UPLOADS_AT_ONCE_MAX) this.#begin(row);
    const stored = this.#storedCount;
    this.#storedCount = 0;
    return { stored };
  }

  /** Removes staged files that no row refers to. Must be called at startup only. */
  async recover(): Promise<number> {
    const { rows, staging, host } = this.#parts;
    return staging.removeExcept(await rows.stagedNames(host));
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the outbox is closing'));
    const runningPromises = [...this.#runningUploads.values()].map(({ done }) => done);
    await withTimeout(CLOSE_WAIT_MAX_MS, 'the outbox to stop', () => Promise.all(runningPromises)).catch(error =>
      this.#parts.log.warn('outbox.close_unfinished', { reason: reason(error) }),
    );
  }

  #begin(row: OutboxRow): void {
    // The key was checked when the file was posted. The store checks it again.
    const key = row.key as ArtifactKey;
    const uploadPromise = this.#store(row, key).finally(() => {
      this.#runningUploads.delete(row.id);
      if (!this.#closeController.signal.aborted) this.#parts.trigger();
    });
    this.#runningUploads.set(row.id, { key, done: uploadPromise });
  }

  async #store(row: OutboxRow, key: ArtifactKey): Promise<void> {
    const { rows, artifacts, staging, log } = this.#parts;
    const { contentType } = row;
    const { signal } = this.#closeController;
    try {
      await artifacts.putFile(key, staging.pathOf(row.staged), { ...(contentType ? { contentType } : {}), signal });
      // If the row has been removed in the meantime, the object must not remain either.
      if (await rows.remove(row.id)) this.#storedCount += 1;
      else await artifacts.remove([key]);
    } catch (error) {
      if (signal.aborted) return;
      log.warn('outbox.not_stored', { objectKey: key, attempts: row.attempts + 1, reason: reason(error) });
      await this.#postpone(row);
    }
  }

  async #postpone(row: OutboxRow): Promise<void> {
    const { rows, clock, log } = this.#parts;
    const retryDelayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(row.attempts, 10));
    await rows
      .postpone(row.id, addMs(clock.now(), retryDelayMs))
      .catch(error => log.warn('outbox.not_put_off', { objectKey: row.key, reason: reason(error) }));
  }
}
