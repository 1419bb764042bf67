// Writes files into the folder of a box that has not started. Only this server has written to that folder, so it cannot
// contain hostile links. Even so, files are opened with O_EXCL and O_NOFOLLOW, and their owner is set through the open
// descriptor.
import { constants } from 'node:fs';
import { chown, type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode } from '../../kit/durable.ts';
import type { BoxHost } from './box-host.ts';
import type { NewFile } from './slots.ts';

/** Small files are read into memory. At most this many of them are written concurrently. */
const SMALL_FILES_AT_ONCE_MAX = 8;
const SMALL_FILE_BYTES_MAX = 1024 ** 2;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const NEW_FILE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Writes the files. Settles only after the last write has finished. */
export async function writeFiles(
  host: BoxHost,
  folder: string,
  files: AsyncIterable<NewFile>,
  signal: AbortSignal,
): Promise<void> {
  const writer = new FolderWriter(host, folder, await ownerOf(host, folder), signal);
  try {
    for await (const file of files) await writer.add(file);
  } finally {
    await writer.whenSettled();
  }
  writer.throwIfFailed();
}

async function ownerOf(host: BoxHost, folder: string): Promise<number | undefined> {
  return host.form === 'root' ? host.requireOwnUid((await lstat(folder)).uid) : undefined;
}

class FolderWriter {
  readonly #host: BoxHost;
  readonly #folder: string;
  readonly #uid: number | undefined;
  readonly #signal: AbortSignal;
  readonly #folderPromises = new Map<string, Promise<void>>();
  readonly #pendingWrites = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(host: BoxHost, folder: string, uid: number | undefined, signal: AbortSignal) {
    this.#host = host;
    this.#folder = folder;
    this.#uid = uid;
    this.#signal = signal;
    this.#folderPromises.set('.', Promise.resolve());
  }

  /** Resolves when the body has been read. A small file may not be completely written yet. */
  async add(file: NewFile): Promise<void> {
    this.#signal.throwIfAborted();
    this.throwIfFailed();
    if (file.size > this.#host.limits.diskBytes)
      throw new Error(`${JSON.stringify(file.name)} is larger than the disk limit of a session`);
    if (file.size > SMALL_FILE_BYTES_MAX) return this.#write(file.name, handle => this.#copy(file, handle));
    const bytes = await readAll(file);
    while (this.#pendingWrites.size >= SMALL_FILES_AT_ONCE_MAX) await Promise.race(this.#pendingWrites);
    this.#trackWrite(this.#write(file.name, handle => handle.writeFile(bytes)));
  }

  async whenSettled(): Promise<void> {
    await Promise.all(this.#pendingWrites);
  }

  /** Throws the first error of a concurrent write. */
  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.error;
  }

  #trackWrite(work: Promise<void>): void {
    const pendingWrite = work
      .catch(error => {
        this.#failure ??= { error };
      })
      .finally(() => this.#pendingWrites.delete(pendingWrite));
    this.#pendingWrites.add(pendingWrite);
  }

  async #write(name: string, fill: (handle: FileHandle) => Promise<void>): Promise<void> {
    await this.#ensureFolder(dirname(name));
    const handle = await open(join(this.#folder, name), NEW_FILE_FLAGS, FILE_MODE);
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

  #ensureFolder(name: string): Promise<void> {
    const existingFolder = this.#folderPromises.get(name);
    if (existingFolder) return existingFolder;
    const newFolder = this.#makeFolder(name);
    this.#folderPromises.set(name, newFolder);
    return newFolder;
  }

  async #makeFolder(name: string): Promise<void> {
    await this.#ensureFolder(dirname(name));
    const path = join(this.#folder, name);
    try {
      await mkdir(path, { mode: FOLDER_MODE });
    } catch (error) {
      if (hasCode(error, 'EEXIST') && (await lstat(path)).isDirectory()) return;
      throw error;
    }
    if (this.#uid !== undefined) await chown(path, this.#uid, this.#uid);
  }
}

async function readAll({ body }: NewFile): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}
