// Stores artifacts in the data folder: `artifacts/objects/` contains files named by key, `artifacts/incoming/` contains
// unfinished files. A file is written to `incoming`, synced and then renamed, so that `objects` contains only complete
// objects.
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, opendir, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { hasCode, makeFolder, moveDurably, syncFolder, writeSynced } from '../../kit/durable.ts';
import { writeHashed } from '../../kit/hashed-write.ts';
import type { Artifacts, ByteRange, OpenedArtifact, PutOptions, Stored } from './artifacts.ts';
import { linkForBackups } from './backup-links.ts';
import { type ArtifactKey, type ArtifactPrefix, asKey } from './keys.ts';

const READ_CHUNK_BYTES = 256 * 1024;

/**
 * `process` is the number of this process if several processes use the folder. Each process has its own folder for
 * unfinished files.
 */
export async function openDisk(dataDir: string, process = 1): Promise<Artifacts> {
  const disk = new Disk(dataDir, process === 1 ? 'incoming' : `incoming-${process}`);
  await disk.createFolders();
  return disk;
}

class Disk implements Artifacts {
  readonly kind = 'disk';
  readonly #dataDir: string;
  readonly #objectsFolder: string;
  readonly #incomingFolder: string;

  constructor(dataDir: string, incomingName: string) {
    this.#dataDir = dataDir;
    this.#objectsFolder = join(dataDir, 'artifacts', 'objects');
    this.#incomingFolder = join(dataDir, 'artifacts', incomingName);
  }

  async createFolders(): Promise<void> {
    for (const folder of [this.#objectsFolder, this.#incomingFolder])
      await mkdir(folder, { recursive: true, mode: 0o700 });
  }

  async put(key: ArtifactKey, body: AsyncIterable<Uint8Array>, { signal }: PutOptions = {}): Promise<Stored> {
    const temporaryPath = join(this.#incomingFolder, randomUUID());
    try {
      const storedFile = await writeSynced(temporaryPath, file => writeHashed(file, body, signal));
      await moveDurably(temporaryPath, this.#pathOf(key));
      return storedFile;
    } catch (error) {
      await rm(temporaryPath, { force: true });
      throw error;
    }
  }

  async putFile(key: ArtifactKey, path: string, options: PutOptions = {}): Promise<void> {
    const file = await openOrUndefined(path);
    if (!file) return this.#assertStored(key, path);
    try {
      await file.sync();
      await moveDurably(path, this.#pathOf(key));
    } catch (error) {
      if (!hasCode(error, 'EXDEV')) throw error;
      await this.put(key, file.createReadStream({ autoClose: false, highWaterMark: READ_CHUNK_BYTES }), options);
      await unlink(path);
    } finally {
      await file.close();
    }
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenedArtifact | undefined> {
    const file = await openOrUndefined(this.#pathOf(key));
    if (!file) return undefined;
    const { size } = await file.stat();
    const bounds = range ? { start: range.first, end: range.last } : {};
    return { size, body: file.createReadStream({ highWaterMark: READ_CHUNK_BYTES, ...bounds }) };
  }

  /** Uses three system calls and no stream, because a recording has hundreds of segments. */
  async read(key: ArtifactKey, range?: ByteRange): Promise<Buffer | undefined> {
    const file = await openOrUndefined(this.#pathOf(key));
    if (!file) return undefined;
    try {
      const { first, last } = range ?? { first: 0, last: (await file.stat()).size - 1 };
      return await readExactly(file, first, last - first + 1);
    } finally {
      await file.close();
    }
  }

  async stat(key: ArtifactKey): Promise<{ size: number } | undefined> {
    try {
      const { size } = await stat(this.#pathOf(key));
      return { size };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  async *list(prefix: ArtifactPrefix): AsyncIterable<ArtifactKey> {
    yield* this.#filesIn(join(this.#objectsFolder, prefix));
  }

  async remove(keys: readonly ArtifactKey[]): Promise<void> {
    const folders = new Set<string>();
    for (const key of keys) {
      const path = this.#pathOf(key);
      await linkForBackups(this.#dataDir, path);
      await unlink(path).then(() => folders.add(dirname(path)), ignoreAbsent);
    }
    for (const folder of folders) await this.#removeEmptyFolders(folder);
  }

  async signedUrl(): Promise<undefined> {
    return undefined;
  }

  async recover(): Promise<void> {
    await rm(this.#incomingFolder, { recursive: true, force: true });
    await makeFolder(this.#incomingFolder);
  }

  close(): void {}

  #pathOf(key: ArtifactKey): string {
    return join(this.#objectsFolder, asKey(key));
  }

  async *#filesIn(folder: string): AsyncIterable<ArtifactKey> {
    const entries = await opendir(folder).catch(ignoreAbsent);
    for await (const entry of entries ?? []) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) yield* this.#filesIn(path);
      else yield asKey(relative(this.#objectsFolder, path).split(sep).join('/'));
    }
  }

  async #assertStored(key: ArtifactKey, path: string): Promise<void> {
    if (!(await this.stat(key))) throw new Error(`${path} is missing, and no file is stored as ${key}`);
  }

  /**
   * Makes removals durable, and removes empty folders. If a folder is removed during a `put`, the `put` creates it
   * again.
   */
  async #removeEmptyFolders(folder: string): Promise<void> {
    await syncFolder(folder).catch(ignoreAbsent);
    for (let emptyFolder = folder; emptyFolder !== this.#objectsFolder; emptyFolder = dirname(emptyFolder))
      try {
        await rmdir(emptyFolder);
      } catch (error) {
        if (hasCode(error, 'ENOTEMPTY') || hasCode(error, 'EEXIST')) return;
        if (!isAbsent(error)) throw error;
      }
  }
}

async function readExactly(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await file.read(bytes, at, length - at, from + at);
    if (bytesRead === 0) throw new Error(`the file ends ${length - at} bytes before the end of the requested range`);
    at += bytesRead;
  }
  return bytes;
}

const isAbsent = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR');

function ignoreAbsent(error: unknown): undefined {
  if (!isAbsent(error)) throw error;
}

async function openOrUndefined(path: string): Promise<FileHandle | undefined> {
  return open(path, 'r').catch(ignoreAbsent);
}
