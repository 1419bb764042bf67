// Writes a backup: the files one after the other, then the manifest, and finally the digest. The archive has the suffix
// `.partial` until it is complete.
import { createHash } from 'node:crypto';
import { type FileHandle, link, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { ZipFile } from 'yazl';
import { hasCode, syncFolder } from '../../kit/durable.ts';
import { Fault } from '../../kit/fault.ts';
import {
  archiveComment,
  DIGEST_CHARACTERS,
  DIGEST_PLACEHOLDER,
  ENTRIES_MAX,
  type FileEntry,
  FORMAT_VERSION,
  type FolderEntry,
  MANIFEST_NAME,
  type Manifest,
  type ManifestHead,
} from './format.ts';

/** An entry of at least this expected size is written in the zip64 format, which allows more than 4 GiB. */
const ZIP64_BYTES_MIN = 2 * 1024 ** 3;
const FAST_COMPRESSION_LEVEL = 1;

export interface FileContent extends Omit<FileEntry, 'size' | 'sha256'> {
  /** The approximate size. */
  readonly expectedBytes: number;
  /** Whether the bytes are worth compressing. */
  readonly compress: boolean;
  readonly bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

export class BackupWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #zip = new ZipFile();
  readonly #writtenDigest: Promise<string>;
  readonly #failure = Promise.withResolvers<never>();
  readonly #folders = new Map<string, FolderEntry>();
  readonly #entries: FileEntry[] = [];

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
    this.#failure.promise.catch(() => {});
    this.#zip.on('error', error => this.#failure.reject(error));
    this.#writtenDigest = writeDigested(this.#zip.outputStream, file);
    this.#writtenDigest.catch(error => this.#failure.reject(error));
  }

  /** @throws Fault `backup_exists` if the `.partial` file for this name already exists. */
  static async create(path: string): Promise<BackupWriter> {
    try {
      return new BackupWriter(path, await open(partialPath(path), 'wx', 0o600));
    } catch (error) {
      throw hasCode(error, 'EEXIST') ? existingFileFault(partialPath(path)) : error;
    }
  }

  /** Adds a folder. If the folder has already been added, the first entry is kept. */
  addFolder(folder: FolderEntry): void {
    if (!this.#folders.has(folder.path)) this.#folders.set(folder.path, folder);
  }

  /** Adds a file. Resolves when its bytes have been read. Only one call at a time is allowed. */
  async add({ bytes, expectedBytes, compress, ...file }: FileContent): Promise<void> {
    if (this.#entries.length >= ENTRIES_MAX)
      throw new Error(
        `the backup would exceed the limit of ${ENTRIES_MAX} files; delete sessions that are no longer needed`,
      );
    const { stream, whenRead } = withDigest(bytes);
    const zip64Option = { forceZip64Format: expectedBytes >= ZIP64_BYTES_MIN };
    this.#zip.addReadStream(stream, file.path, {
      ...zip64Option,
      ...(compress ? { compressionLevel: FAST_COMPRESSION_LEVEL } : { compress }),
    });
    this.#entries.push({ ...file, ...(await Promise.race([whenRead, this.#failure.promise])) });
  }

  /** Resolves with the number of files and bytes when the backup is on the disk under its final name. */
  async finish(head: ManifestHead): Promise<{ readonly files: number; readonly bytes: number }> {
    const manifest: Manifest = {
      format: FORMAT_VERSION,
      ...head,
      folders: [...this.#folders.values()],
      entries: this.#entries,
    };
    this.#zip.addReadStream(Readable.from([Buffer.from(JSON.stringify(manifest))]), MANIFEST_NAME);
    this.#zip.end({ comment: archiveComment(DIGEST_PLACEHOLDER), forceZip64Format: false });
    const digest = await Promise.race([this.#writtenDigest, this.#failure.promise]);
    const { size } = await this.#file.stat();
    await this.#file.write(digest, size - DIGEST_CHARACTERS);
    await this.#file.sync();
    await this.#file.close();
    // Unlike a rename, a link does not replace a file that somebody has created there in the meantime.
    await link(partialPath(this.#path), this.#path).catch(error => {
      throw hasCode(error, 'EEXIST') ? existingFileFault(this.#path) : error;
    });
    await rm(partialPath(this.#path));
    await syncFolder(dirname(this.#path));
    return { files: this.#entries.length, bytes: size };
  }

  async abandon(): Promise<void> {
    await this.#file.close().catch(() => {});
    await rm(partialPath(this.#path), { force: true });
  }
}

const partialPath = (path: string): string => `${path}.partial`;

const existingFileFault = (path: string): Fault =>
  new Fault('backup_exists', `${path} already exists.`, { advice: 'Remove it, or choose another name.' });

function withDigest(bytes: FileContent['bytes']) {
  const { promise, resolve, reject } = Promise.withResolvers<{ size: number; sha256: string }>();
  promise.catch(() => {});
  const digestChunks = async function* (): AsyncGenerator<Uint8Array> {
    const hash = createHash('sha256');
    let size = 0;
    try {
      for await (const chunk of bytes) {
        hash.update(chunk);
        size += chunk.length;
        yield chunk;
      }
      resolve({ size, sha256: hash.digest('hex') });
    } catch (error) {
      reject(error);
      throw error;
    }
  };
  return { stream: Readable.from(digestChunks(), { objectMode: false }), whenRead: promise };
}

/**
 * Writes the archive. Resolves with the digest of all bytes before the placeholder at the end, which the digest will
 * replace.
 */
async function writeDigested(stream: AsyncIterable<Uint8Array | string>, file: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  let unhashedTail = Buffer.alloc(0);
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    await file.appendFile(bytes);
    const unhashedBytes = Buffer.concat([unhashedTail, bytes]);
    const hashedLength = Math.max(0, unhashedBytes.length - DIGEST_CHARACTERS);
    hash.update(unhashedBytes.subarray(0, hashedLength));
    unhashedTail = unhashedBytes.subarray(hashedLength);
  }
  return hash.digest('hex');
}
