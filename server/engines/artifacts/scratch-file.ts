// A file without a name, for bytes that do not fit into memory. Its disk space is freed when the file is closed or the
// process ends.
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** A range of the file: its offset and its length, in bytes. */
export interface Extent {
  readonly at: number;
  readonly length: number;
}

export class ScratchFile {
  readonly #file: FileHandle;
  #end = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async create(folder: string): Promise<ScratchFile> {
    const path = join(folder, randomUUID());
    const file = await open(path, 'wx+', 0o600);
    await rm(path);
    return new ScratchFile(file);
  }

  async append(bytes: Uint8Array): Promise<Extent> {
    const extent = { at: this.#end, length: bytes.length };
    this.#end += bytes.length;
    for (let writtenBytes = 0; writtenBytes < bytes.length; )
      writtenBytes += (
        await this.#file.write(bytes, writtenBytes, bytes.length - writtenBytes, extent.at + writtenBytes)
      ).bytesWritten;
    return extent;
  }

  async read({ at, length }: Extent): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    for (let totalBytesRead = 0; totalBytesRead < length; ) {
      const { bytesRead } = await this.#file.read(bytes, totalBytesRead, length - totalBytesRead, at + totalBytesRead);
      if (bytesRead === 0) throw new Error(`the scratch file ends before byte ${at + length}`);
      totalBytesRead += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
