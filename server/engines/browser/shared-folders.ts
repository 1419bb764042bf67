// Folders that are mounted into boxes and shared by all browsers that request the same name. When the number of unused
// folders exceeds a limit, they are removed, least recently used first.
import { chmod, mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { TurnQueue } from '../../kit/turns.ts';

/** Each use removes at most this many folders, because the start of a browser waits for the removal. */
const REMOVED_PER_USE_MAX = 32;

export interface SharedFoldersOptions {
  /** The folder that contains the shared folders and nothing else. */
  readonly parent: string;
  /** Maximum number of folders that no browser uses. */
  readonly unusedMax: number;
  readonly unusedBytesMax: number;
  readonly bytesOf: (folder: string) => Promise<number>;
  /** Browsers of a previous process may use a folder for this long after they started. */
  readonly lifetimeMs: number;
  readonly clock: Clock;
}

export interface SharedFolder {
  readonly path: string;
  /** Must be called when the browser has ended. */
  release(): void;
}

export class SharedFolders {
  readonly #options: SharedFoldersOptions;
  readonly #turns = new TurnQueue<string>();
  readonly #useCounts = new Map<string, number>();
  /**
   * The time since which uses are counted. Browsers that started before this time belong to a previous process and are
   * not included in the use counts.
   */
  readonly #countedSinceMs: number;

  constructor(folderOptions: SharedFoldersOptions) {
    this.#options = folderOptions;
    this.#countedSinceMs = folderOptions.clock.now().getTime();
  }

  /**
   * Returns the folder for this name. `fill` writes the files of the folder. `fill` is called for each use, so the
   * folder may already contain the files of an earlier use.
   */
  async use(name: string, fill: (folder: string) => Promise<void>): Promise<SharedFolder> {
    const path = join(this.#options.parent, name);
    this.#useCounts.set(name, (this.#useCounts.get(name) ?? 0) + 1);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#release(name);
    };
    try {
      await this.#turns.run(name, async () => {
        await mkdir(path, { recursive: true });
        // The umask may have removed permissions that the box's user needs.
        await chmod(path, 0o755);
        await fill(path);
        const now = this.#options.clock.now();
        await utimes(path, now, now);
      });
      await this.#removeUnused();
      return { path, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #release(name: string): void {
    const remainingUses = (this.#useCounts.get(name) ?? 1) - 1;
    if (remainingUses > 0) this.#useCounts.set(name, remainingUses);
    else this.#useCounts.delete(name);
  }

  async #removeUnused(): Promise<void> {
    const { parent, unusedMax, unusedBytesMax } = this.#options;
    const unusedNames = (await readdir(parent)).filter(name => !this.#useCounts.has(name));
    const folders = await Promise.all(unusedNames.map(name => this.#inspect(name)));
    let totalBytes = 0;
    let folderCount = 0;
    const surplusNames: string[] = [];
    for (const folder of folders.sort((left, right) => right.lastUsedMs - left.lastUsedMs)) {
      if (this.#mayBelongToFormerProcess(folder.lastUsedMs)) continue;
      totalBytes += folder.bytes;
      folderCount++;
      if (folderCount > unusedMax || totalBytes > unusedBytesMax) surplusNames.push(folder.name);
    }
    for (const name of surplusNames.slice(-REMOVED_PER_USE_MAX)) await this.#remove(name);
  }

  async #inspect(name: string): Promise<{ name: string; lastUsedMs: number; bytes: number }> {
    const path = join(this.#options.parent, name);
    // A folder that is being removed counts as the oldest and as empty.
    const [lastUsedMs, bytes] = await Promise.all([
      stat(path)
        .then(({ mtimeMs }) => mtimeMs)
        .catch(() => 0),
      this.#options.bytesOf(path).catch(() => 0),
    ]);
    return { name, lastUsedMs, bytes };
  }

  #remove(name: string): Promise<void> {
    return this.#turns.run(name, async () => {
      if (!this.#useCounts.has(name)) await rm(join(this.#options.parent, name), { recursive: true, force: true });
    });
  }

  #mayBelongToFormerProcess(lastUsedMs: number): boolean {
    return (
      lastUsedMs < this.#countedSinceMs && this.#options.clock.now().getTime() - lastUsedMs < this.#options.lifetimeMs
    );
  }
}
