// Fills the folder of a box that has not run yet. Nobody but us could have put anything there, so no link can lead away;
// each file is made anew all the same, and given to the folder's owner through the open file, never by its name.
import { constants } from 'node:fs';
import { chown, type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isCode } from '../../kit/durable.ts';
import type { Ground } from './ground.ts';
import type { NewFile } from './slots.ts';

/** So many small files are written at once, from memory. */
const SMALL_AT_ONCE = 8;
const SMALL_BYTES_MAX = 1024 ** 2;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Resolves, or rejects, when nothing is written any more. */
export async function writeFiles(
  ground: Ground,
  folder: string,
  files: AsyncIterable<NewFile>,
  signal: AbortSignal,
): Promise<void> {
  const filling = new Filling(ground, folder, await ownerOf(ground, folder), signal);
  try {
    for await (const file of files) await filling.take(file);
  } finally {
    await filling.settled();
  }
  filling.demandAll();
}

async function ownerOf(ground: Ground, folder: string): Promise<number | undefined> {
  return ground.form === 'root' ? ground.demandOwnUid((await lstat(folder)).uid) : undefined;
}

class Filling {
  readonly #ground: Ground;
  readonly #folder: string;
  readonly #uid: number | undefined;
  readonly #signal: AbortSignal;
  readonly #folders = new Map<string, Promise<void>>();
  readonly #writing = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(ground: Ground, folder: string, uid: number | undefined, signal: AbortSignal) {
    this.#ground = ground;
    this.#folder = folder;
    this.#uid = uid;
    this.#signal = signal;
    this.#folders.set('.', Promise.resolve());
  }

  /** Returns when the body is read. */
  async take(file: NewFile): Promise<void> {
    this.#signal.throwIfAborted();
    this.demandAll();
    if (file.size > this.#ground.limits.diskBytes)
      throw new Error(`${JSON.stringify(file.name)} is larger than the folder of a box may be`);
    if (file.size > SMALL_BYTES_MAX) return this.#write(file.name, handle => this.#copy(file, handle));
    const bytes = await collected(file);
    while (this.#writing.size >= SMALL_AT_ONCE) await Promise.race(this.#writing);
    this.#beside(this.#write(file.name, handle => handle.writeFile(bytes)));
  }

  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** Throws what went wrong with a file that was written beside others. */
  demandAll(): void {
    if (this.#failure) throw this.#failure.error;
  }

  #beside(work: Promise<void>): void {
    const watched = work
      .catch(error => {
        this.#failure ??= { error };
      })
      .finally(() => this.#writing.delete(watched));
    this.#writing.add(watched);
  }

  async #write(name: string, fill: (handle: FileHandle) => Promise<void>): Promise<void> {
    await this.#parent(dirname(name));
    const handle = await open(join(this.#folder, name), NEW_FILE, FILE_MODE);
    try {
      if (this.#uid !== undefined) await handle.chown(this.#uid, this.#uid);
      await fill(handle);
    } finally {
      await handle.close();
    }
  }

  async #copy({ body }: NewFile, handle: FileHandle): Promise<void> {
    for await (const part of body) {
      this.#signal.throwIfAborted();
      await handle.writeFile(part);
    }
  }

  #parent(name: string): Promise<void> {
    const known = this.#folders.get(name);
    if (known) return known;
    const made = this.#makeFolder(name);
    this.#folders.set(name, made);
    return made;
  }

  async #makeFolder(name: string): Promise<void> {
    await this.#parent(dirname(name));
    const path = join(this.#folder, name);
    try {
      await mkdir(path, { mode: FOLDER_MODE });
    } catch (error) {
      if (isCode(error, 'EEXIST') && (await lstat(path)).isDirectory()) return;
      throw error;
    }
    if (this.#uid !== undefined) await chown(path, this.#uid, this.#uid);
  }
}

async function collected({ body }: NewFile): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}
