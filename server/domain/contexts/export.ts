// Exports a stored version as Playwright's storage state, which may be large. A worker thread writes the text to an
// unlinked file, which is streamed to the caller. A slow reader therefore occupies neither memory nor the thread.
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Profiles } from '../../engines/profiles/profiles.ts';
import type { ContextRow, VersionRow } from '../../engines/store/rows/contexts.ts';
import type { Clock } from '../../kit/clock.ts';
import { newId } from '../../kit/ids.ts';
import type { Job, Workers } from '../../kit/worker-pool.ts';
import { fault } from '../faults.ts';
import type { StoredVersions } from './stored-versions.ts';

/**
 * Maximum numbers of concurrent exports, per application and in this process. An export counts from the first byte read
 * from storage until the caller has read the last byte.
 */
const EXPORTS_PER_APPLICATION_MAX = 2;
const EXPORTS_MAX = 8;

export interface StateInput {
  /** The cookies as JSON in Chromium's format. */
  readonly cookies: Uint8Array | undefined;
  readonly localStorage: ReadonlyMap<string, Uint8Array>;
  /** Descriptor of the file to write to. The threads of a process share their open files. */
  readonly descriptor: number;
}

/** `damaged` is the reason why the stored data cannot be read. */
export type StateOutput = { readonly bytes: number } | { readonly damaged: string };
export type StateJob = Job<StateInput, StateOutput>;

export interface ExportsParts {
  readonly storedVersions: StoredVersions;
  readonly profiles: Profiles;
  readonly workers: Workers;
  readonly job: StateJob;
  /** Folder for temporary files. */
  readonly folder: string;
  readonly clock: Clock;
}

export interface ExportedState {
  readonly bytes: number;
  readonly body: Readable;
}

export class StateDamaged extends Error {
  override readonly name = 'StateDamaged';
}

export class Exports {
  readonly #parts: ExportsParts;
  readonly #runningExportCounts = new Map<string, number>();
  #runningTotal = 0;

  constructor(parts: ExportsParts) {
    this.#parts = parts;
  }

  /** Exports the version. Exports an empty state if the version is undefined. */
  async exportVersion(row: ContextRow, version: VersionRow | undefined): Promise<ExportedState> {
    const endExport = this.#startExport(row.applicationId);
    let file: FileHandle | undefined;
    try {
      file = await this.#createUnlinkedFile();
      const bytes = await this.#write(row, version, file.fd);
      const body = file.createReadStream({ start: 0 });
      body.once('close', endExport);
      return { bytes, body };
    } catch (error) {
      await file?.close();
      endExport();
      throw error;
    }
  }

  async #write(row: ContextRow, version: VersionRow | undefined, descriptor: number): Promise<number> {
    const { storedVersions, profiles, workers, job } = this.#parts;
    const cookies = version?.cookiesOf ? await storedVersions.openCookieText(row, version.cookiesOf) : undefined;
    const archive = version?.archive && (await storedVersions.openArchive(row, version.archive));
    const localStorage = archive ? await profiles.localStorageFiles(archive) : new Map<string, Buffer>();
    const transferList = [...localStorage.values()].flatMap(({ buffer }) =>
      buffer instanceof ArrayBuffer ? [buffer] : [],
    );
    const output = await workers.run(
      job,
      { cookies, localStorage, descriptor },
      { owner: row.applicationId, movedBuffers: transferList },
    );
    if ('damaged' in output) throw new StateDamaged(output.damaged);
    return output.bytes;
  }

  async #createUnlinkedFile(): Promise<FileHandle> {
    const { folder, clock } = this.#parts;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, newId(clock.now()));
    const file = await open(path, 'wx+', 0o600);
    await rm(path);
    return file;
  }

  #startExport(application: string): () => void {
    const runningCount = this.#runningExportCounts.get(application) ?? 0;
    const [limit, used] =
      runningCount >= EXPORTS_PER_APPLICATION_MAX
        ? [EXPORTS_PER_APPLICATION_MAX, runningCount]
        : [EXPORTS_MAX, this.#runningTotal];
    if (used >= limit)
      throw fault('rate_limited', `${limit} storage states are already being exported, which is the limit.`, {
        advice: 'Wait for an export to finish, and send the request again.',
        details: { limit, used, retryAfterSeconds: 1 },
      });
    this.#runningExportCounts.set(application, runningCount + 1);
    this.#runningTotal++;
    return () => {
      this.#runningTotal--;
      const remainingCount = (this.#runningExportCounts.get(application) ?? 1) - 1;
      if (remainingCount > 0) this.#runningExportCounts.set(application, remainingCount);
      else this.#runningExportCounts.delete(application);
    };
  }
}
