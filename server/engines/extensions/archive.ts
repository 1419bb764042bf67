// Reads a zip archive as what it is: hostile. Every entry is judged before anything is read of it, and what is inflated is
// counted while it is inflated, whatever the archive says of itself.

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
/** Text compresses ten to thirty times; a bomb a thousand times. Small archives may do as they like. */
const RATIO_MAX = 100;
const RATIO_FREE_BYTES = 16 * 1024 ** 2;

const STORED = 0;
const DEFLATED = 8;
/** File types in the upper half of the attributes, where a Unix wrote the archive. */
const TYPE_MASK = 0o170000;
const TYPE = { regular: 0o100000, folder: 0o040000, link: 0o120000 } as const;

export interface ArchivedFile {
  readonly path: readonly string[];
  readonly isFolder: boolean;
  /** The inflated bytes; the stream fails where they are not what the archive promised, or too many in all. */
  read(): Promise<Readable>;
}

export interface ArchivePlace {
  readonly path: string;
  /** Where in the file the archive begins, and where it ends. */
  readonly start: number;
  readonly end: number;
}

/** Calls `visit` for one entry after the other, in the order of the archive. */
export async function eachFile(place: ArchivePlace, visit: (file: ArchivedFile) => Promise<void>): Promise<void> {
  const zip = await openZip(place);
  const bounds = new Bounds(place.end - place.start);
  const seen = new SeenNames();
  try {
    if (zip.entryCount > ENTRIES_MAX) throw tooManyEntries(zip.entryCount);
    for await (const entry of zip.eachEntry()) {
      const file = judged(zip, entry, bounds);
      if (!file) continue;
      seen.add(file.path, file.isFolder);
      await visit(file);
    }
  } catch (error) {
    throw asRefusal(error);
  } finally {
    zip.close();
  }
}

async function openZip({ path, start, end }: ArchivePlace): Promise<ZipFile> {
  const options = { lazyEntries: true, autoClose: false, decodeStrings: false, validateEntrySizes: true };
  try {
    return await fromRandomAccessReaderPromise(new PartOfFile(path, start), end - start, options);
  } catch (error) {
    throw refusal('not_a_zip', `it is no zip archive (${textOf(error)})`, 'Upload a .zip or a .crx (version 3).');
  }
}

class PartOfFile extends RandomAccessReader {
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

function judged(zip: ZipFile, entry: Entry, bounds: Bounds): ArchivedFile | undefined {
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  const path = entryPath(name);
  const isFolder = name.endsWith('/');
  demandOrdinary(name, entry, isFolder);
  if (!path) return undefined;
  bounds.announced(entry.uncompressedSize);
  return { path, isFolder, read: () => inflated(zip, entry, bounds) };
}

function demandOrdinary(name: string, entry: Entry, isFolder: boolean): void {
  const shown = JSON.stringify(name);
  if (entry.isEncrypted()) throw refusal('encrypted', `${shown} is encrypted`, 'Pack it without a password.');
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED)
    throw refusal(
      'compression_method',
      `${shown} is compressed by method ${entry.compressionMethod}`,
      'Pack it stored or deflated.',
    );
  const type = (entry.externalFileAttributes >>> 16) & TYPE_MASK;
  if (type === TYPE.link) throw refusal('link', `${shown} is a link`, 'Pack the file itself in its place.');
  if (type !== 0 && type !== (isFolder ? TYPE.folder : TYPE.regular))
    throw refusal('special_file', `${shown} is no ordinary file or folder`, 'Leave it out.');
}

async function inflated(zip: ZipFile, entry: Entry, bounds: Bounds): Promise<Readable> {
  const stream = await zip.openReadStreamPromise(entry);
  let sum = 0;
  const counted = new Transform({
    transform: (chunk: Buffer, _, done) => {
      sum = crc32(chunk, sum);
      done(bounds.exceeded(chunk.length), chunk);
    },
    flush: done => done(sum === entry.crc32 ? null : new Error('the checksum of an entry does not match')),
  });
  stream.on('error', error => counted.destroy(error));
  counted.on('close', () => stream.destroy());
  return stream.pipe(counted);
}

/** How much may come out of an archive of this size. */
class Bounds {
  readonly #ratioBytesMax: number;
  #announced = 0;
  #inflated = 0;

  constructor(archiveBytes: number) {
    this.#ratioBytesMax = Math.max(RATIO_FREE_BYTES, RATIO_MAX * archiveBytes);
  }

  announced(bytes: number): void {
    this.#announced += bytes;
    const refused = this.#refusal(this.#announced);
    if (refused) throw refused;
  }

  exceeded(bytes: number): Error | null {
    this.#inflated += bytes;
    return this.#refusal(this.#inflated);
  }

  #refusal(bytes: number): Error | null {
    if (bytes > UNPACKED_BYTES_MAX)
      return refusal(
        'too_large_unpacked',
        `it unpacks to more than ${UNPACKED_BYTES_MAX} bytes`,
        'Leave out what the extension does not need.',
      );
    if (bytes > this.#ratioBytesMax)
      return refusal(
        'compression_ratio',
        `it unpacks to more than ${RATIO_MAX} times its size`,
        'An extension does not compress like that; pack what it needs only.',
      );
    return null;
  }
}

const tooManyEntries = (count: number) =>
  refusal(
    'too_many_entries',
    `it has ${count} entries; at most ${ENTRIES_MAX} are taken`,
    'Leave out what it does not need.',
  );

/** What the reader of zips throws is about the archive; what the disk throws is not. */
function asRefusal(error: unknown): unknown {
  const isOfDisk = error instanceof Error && 'syscall' in error;
  if (!(error instanceof Error) || error.name === 'Fault' || isOfDisk) return error;
  return refusal('damaged', `the archive is damaged (${textOf(error)})`, 'Pack it anew.');
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
