// Local files that are waiting to be stored: complete, synced and each with a unique name. The caller records the name
// in a row. A file without a row was left behind by a killed server.
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, syncFolder, writeSynced } from '../../kit/durable.ts';
import { writeHashed } from '../../kit/hashed-write.ts';
import type { ByteRange, OpenedArtifact, Stored } from './artifacts.ts';
import { linkForBackups } from './backup-links.ts';
import { ScratchFile } from './scratch-file.ts';

const READ_CHUNK_BYTES = 256 * 1024;
const NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface StagedFile extends Stored {
  readonly name: string;
}

export class Staging {
  readonly #dataDir: string;
  readonly #folder: string;

  private constructor(dataDir: string, folder: string) {
    this.#dataDir = dataDir;
    this.#folder = folder;
  }

  /** Opens `staging/outbox` in the data folder. */
  static async open(dataDir: string): Promise<Staging> {
    const folder = join(dataDir, 'staging', 'outbox');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new Staging(dataDir, folder);
  }

  /** Writes a stream to a new file. If the stream fails, the file is removed. */
  async write(body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StagedFile> {
    const name = randomUUID();
    try {
      const storedFile = await writeSynced(this.pathOf(name), file => writeHashed(file, body, signal));
      await syncFolder(this.#folder);
      return { name, ...storedFile };
    } catch (error) {
      await this.remove(name);
      throw error;
    }
  }

  /**
   * Creates a second hard link, in this folder, to a complete file on the same disk, and computes the checksum of the
   * file. `head` contains the first `headBytes` bytes of the file. The caller removes the original link after a row has
   * been written for the new link, so that the file is never lost.
   */
  async linkIn(path: string, headBytes: number): Promise<StagedFile & { readonly head: Buffer }> {
    const name = randomUUID();
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const hash = createHash('sha256');
      const head = Buffer.alloc(headBytes);
      const { bytesRead } = await file.read(head, 0, headBytes, 0);
      let size = 0;
      for await (const chunk of file.createReadStream({
        start: 0,
        autoClose: false,
        highWaterMark: READ_CHUNK_BYTES,
      })) {
        hash.update(chunk);
        size += chunk.length;
      }
      await file.sync();
      await link(path, this.pathOf(name));
      await syncFolder(this.#folder);
      return { name, size, checksum: hash.digest('hex'), head: head.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  }

  /** Returns the number of free bytes on the disk of this folder, which is also the disk of the sessions. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#folder);
    return bavail * bsize;
  }

  async sizeOf(path: string): Promise<number> {
    return (await stat(path)).size;
  }

  pathOf(name: string): string {
    if (!NAME.test(name)) throw new Error(`${JSON.stringify(name)} is not the name of a staged file`);
    return join(this.#folder, name);
  }

  async open(name: string, range?: ByteRange): Promise<OpenedArtifact | undefined> {
    let file: FileHandle;
    try {
      file = await open(this.pathOf(name), 'r');
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    const { size } = await file.stat();
    const bounds = range ? { start: range.first, end: range.last } : {};
    return { size, body: file.createReadStream({ highWaterMark: READ_CHUNK_BYTES, ...bounds }) };
  }

  async remove(name: string): Promise<void> {
    await linkForBackups(this.#dataDir, this.pathOf(name));
    await rm(this.pathOf(name), { force: true });
  }

  /** Creates a file for intermediate results. The caller must close it. */
  scratchFile(): Promise<ScratchFile> {
    return ScratchFile.create(this.#folder);
  }

  /**
   * Removes all files except those with these names, and returns the number of removed files. Must be called at the
   * start, before anything is written here.
   */
  async removeExcept(names: ReadonlySet<string>): Promise<number> {
    const surplusNames = (await readdir(this.#folder)).filter(name => NAME.test(name) && !names.has(name));
    for (const name of surplusNames) await this.remove(name);
    return surplusNames.length;
  }
}
