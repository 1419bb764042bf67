// Folders that started browsers see, each made from a name and shared by all that ask for it. Those that nobody uses any
// more are removed, the one that was used longest ago first, once there are more than a bound.
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { Turns } from '../../kit/turns.ts';

/** Removed by one use at most: a browser waits for it. */
const REMOVED_AT_ONCE_MAX = 32;

export interface SharedFoldersParts {
  /** Where they stand; nothing else stands there. */
  readonly parent: string;
  /** Of folders that no browser uses. */
  readonly unusedMax: number;
  readonly unusedBytesMax: number;
  readonly bytesOf: (folder: string) => Promise<number>;
  /** A browser of a former process may use a folder for so long after its start. */
  readonly lifetimeMs: number;
  readonly clock: Clock;
}

export interface SharedFolder {
  readonly path: string;
  /** The browser that sees it has ended. */
  release(): void;
}

export class SharedFolders {
  readonly #parts: SharedFoldersParts;
  readonly #turns = new Turns<string>();
  readonly #uses = new Map<string, number>();
  /** Browsers that were started before are of a former process, and are not counted. */
  readonly #countedSinceMs: number;

  constructor(parts: SharedFoldersParts) {
    this.#parts = parts;
    this.#countedSinceMs = parts.clock.now().getTime();
  }

  /** `fill` puts the folder's files in place; it is called for each use, and finds what earlier ones have left. */
  async use(name: string, fill: (folder: string) => Promise<void>): Promise<SharedFolder> {
    const path = join(this.#parts.parent, name);
    this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#release(name);
    };
    try {
      await this.#turns.take(name, async () => {
        await mkdir(path, { recursive: true, mode: 0o755 });
        await fill(path);
        const now = this.#parts.clock.now();
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
    const left = (this.#uses.get(name) ?? 1) - 1;
    if (left > 0) this.#uses.set(name, left);
    else this.#uses.delete(name);
  }

  async #removeUnused(): Promise<void> {
    const { parent, unusedMax, unusedBytesMax } = this.#parts;
    const unused = (await readdir(parent)).filter(name => !this.#uses.has(name));
    const looked = await Promise.all(unused.map(name => this.#look(name)));
    let bytes = 0;
    let count = 0;
    const surplus: string[] = [];
    for (const one of looked.sort((left, right) => right.usedMs - left.usedMs)) {
      if (this.#mayBeOfFormerProcess(one.usedMs)) continue;
      bytes += one.bytes;
      count++;
      if (count > unusedMax || bytes > unusedBytesMax) surplus.push(one.name);
    }
    for (const name of surplus.slice(-REMOVED_AT_ONCE_MAX)) await this.#remove(name);
  }

  async #look(name: string): Promise<{ name: string; usedMs: number; bytes: number }> {
    const path = join(this.#parts.parent, name);
    // One that is just being removed is oldest, and has nothing.
    const [usedMs, bytes] = await Promise.all([
      stat(path)
        .then(({ mtimeMs }) => mtimeMs)
        .catch(() => 0),
      this.#parts.bytesOf(path).catch(() => 0),
    ]);
    return { name, usedMs, bytes };
  }

  #remove(name: string): Promise<void> {
    return this.#turns.take(name, async () => {
      if (!this.#uses.has(name)) await rm(join(this.#parts.parent, name), { recursive: true, force: true });
    });
  }

  #mayBeOfFormerProcess(usedMs: number): boolean {
    return usedMs < this.#countedSinceMs && this.#parts.clock.now().getTime() - usedMs < this.#parts.lifetimeMs;
  }
}
