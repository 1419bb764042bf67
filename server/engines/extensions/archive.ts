// Reads an untrusted zip archive. Every entry is checked before it is read. Bytes are counted while they are inflated,
// because the sizes that the archive declares may be wrong.

import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { crc32 } from 'node:zlib';
import {
  type Entry,
  fromRandomAccessReaderPromise,
  getFileNameLowLevel,
  RandomAccessReader,
  type ZipFile,
} from 'yauzl';
import { entryPath, SeenNames } from './entry-name.ts';
import { refusal } from './refusal.ts';

export const ENTRIES_MAX = 10_000;
export const UNPACKED_BYTES_MAX = 500 * 1024 ** 2;
/** The maximum compression ratio. Text compresses by a factor of 10 to 30, a zip bomb by 1000. */
const RATIO_MAX = 100;
/** The ratio is not limited for an archive that unpacks to at most this many bytes. */
const RATIO_EXEMPT_BYTES_MAX = 16 * 1024 ** 2;

const STORED_METHOD = 0;
const DEFLATE_METHOD = 8;
/** Unix file types. They are in the upper half of an entry's attributes if the archive was created on Unix. */
const TYPE_MASK = 0o170000;
const TYPE = { regular: 0o100000, folder: 0o040000, link: 0o120000 } as const;

export interface ArchivedFile {
  readonly path: readonly string[];
  readonly isFolder: boolean;
  /**
   * Returns the inflated bytes. The stream fails if the size or the checksum differs from the declared one, or if a
   * limit is exceeded.
   */
  read(): Promise<Readable>;
}

export interface ArchiveLocation {
  readonly path: string;
  /** Offsets in the file at which the archive begins and ends. */
  readonly start: number;
  readonly end: number;
}

/** Calls `onFile` for each entry in turn, in archive order. */
export async function forEachFile(
  location: ArchiveLocation,
  onFile: (file: ArchivedFile) => Promise<void>,
): Promise<void> {
  const zip = await openZip(location);
  const sizeLimit = new SizeLimit(location.end - location.start);
  const seenNames = new SeenNames();
  try {
    if (zip.entryCount > ENTRIES_MAX) throw tooManyEntries(zip.entryCount);
    for await (const entry of zip.eachEntry()) {
      const file = checkEntry(zip, entry, sizeLimit);
      if (!file) continue;
      seenNames.add(file.path, file.isFolder);
      await onFile(file);
    }
  } catch (error) {
    throw toRefusal(error);
  } finally {
    zip.close();
  }
}

async function openZip({ path, start, end }: ArchiveLocation): Promise<ZipFile> {
  const options = { lazyEntries: true, autoClose: false, decodeStrings: false, validateEntrySizes: true };
  try {
    return await fromRandomAccessReaderPromise(new FileRange(path, start), end - start, options);
  } catch (error) {
    throw refusal('not_a_zip', `it is not a zip archive (${messageOf(error)})`, 'Upload a .zip or a .crx (version 3).');
  }
}

class FileRange extends RandomAccessReader {
  readonly #path: string;
  readonly #start: number;

  constructor(path: string, start: number) {
    super();
    this.#path = path;
    this.#start = start;
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return createReadStream(this.#path, { start: this.#start + start, end: this.#start + end - 1 });
  }
}

function checkEntry(zip: ZipFile, entry: Entry, sizeLimit: SizeLimit): ArchivedFile | undefined {
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  const path = entryPath(name);
  const isFolder = name.endsWith('/');
  assertSupported(name, entry, isFolder);
  if (!path) return undefined;
  sizeLimit.addDeclared(entry.uncompressedSize);
  return { path, isFolder, read: () => inflate(zip, entry, sizeLimit) };
}

function assertSupported(name: string, entry: Entry, isFolder: boolean): void {
  const quotedName = JSON.stringify(name);
  if (entry.isEncrypted())
    throw refusal('encrypted', `${quotedName} is encrypted`, 'Pack the extension without a password.');
  if (entry.compressionMethod !== STORED_METHOD && entry.compressionMethod !== DEFLATE_METHOD)
    throw refusal(
      'compression_method',
      `${quotedName} is compressed with method ${entry.compressionMethod}`,
      'Use the method "store" or "deflate".',
    );
  const type = (entry.externalFileAttributes >>> 16) & TYPE_MASK;
  if (type === TYPE.link) throw refusal('link', `${quotedName} is a link`, 'Replace the link with the file itself.');
  if (type !== 0 && type !== (isFolder ? TYPE.folder : TYPE.regular))
    throw refusal(
      'special_file',
      `${quotedName} is not a regular file or folder`,
      'Remove the entry from the package.',
    );
}

async function inflate(zip: ZipFile, entry: Entry, sizeLimit: SizeLimit): Promise<Readable> {
  const stream = await zip.openReadStreamPromise(entry);
  let checksumSoFar = 0;
  const checkedStream = new Transform({
    transform: (chunk: Buffer, _, callback) => {
      checksumSoFar = crc32(chunk, checksumSoFar);
      callback(sizeLimit.addInflated(chunk.length), chunk);
    },
    flush: callback =>
      callback(checksumSoFar === entry.crc32 ? null : new Error('the checksum of an entry does not match its content')),
  });
  stream.on('error', error => checkedStream.destroy(error));
  checkedStream.on('close', () => stream.destroy());
  return stream.pipe(checkedStream);
}

/** Limits the number of inflated bytes of an archive, both in total and relative to the size of the archive. */
class SizeLimit {
  readonly #ratioBytesMax: number;
  #declaredBytes = 0;
  #inflatedBytes = 0;

  constructor(archiveBytes: number) {
    this.#ratioBytesMax = Math.max(RATIO_EXEMPT_BYTES_MAX, RATIO_MAX * archiveBytes);
  }

  addDeclared(bytes: number): void {
    this.#declaredBytes += bytes;
    const sizeRefusal = this.#refusal(this.#declaredBytes);
    if (sizeRefusal) throw sizeRefusal;
  }

  addInflated(bytes: number): Error | null {
    this.#inflatedBytes += bytes;
    return this.#refusal(this.#inflatedBytes);
  }

  #refusal(bytes: number): Error | null {
    if (bytes > UNPACKED_BYTES_MAX)
      return refusal(
        'too_large_unpacked',
        `it unpacks to more than ${UNPACKED_BYTES_MAX} bytes`,
        'Remove files that the extension does not need.',
      );
    if (bytes > this.#ratioBytesMax)
      return refusal(
        'compression_ratio',
        `it unpacks to more than ${RATIO_MAX} times its size`,
        'Remove files that the extension does not need.',
      );
    return null;
  }
}

const tooManyEntries = (count: number) =>
  refusal(
    'too_many_entries',
    `it has ${count} entries; the limit is ${ENTRIES_MAX}`,
    'Remove files that the extension does not need.',
  );

/**
 * Returns a refusal for an error of the zip reader, because such an error means that the archive is damaged. Returns a
 * disk error unchanged.
 */
function toRefusal(error: unknown): unknown {
  const isDiskError = error instanceof Error && 'syscall' in error;
  if (!(error instanceof Error) || error.name === 'Fault' || isDiskError) return error;
  return refusal('damaged', `the archive is damaged (${messageOf(error)})`, 'Pack the extension again.');
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
