// Restricts the archive of a profile to regular files at known paths, with limits on number, size and depth. Everything
// else that a hostile folder may contain (links, devices, pipes, invalid names) is skipped when a folder is packed, and
// refused when an archive is unpacked.
import { readTarEntries, type TarEntry } from './tar-reader.ts';
import { TAR_END, tarHeader, tarPadding } from './tar-writer.ts';

/**
 * The entries of a profile that are stored: cookies and storage of sites, but no history, passwords, network caches or
 * settings.
 */
export const STORED_ENTRIES = [
  'Cookies',
  'Cookies-journal',
  'Network',
  'Local Storage',
  'IndexedDB',
  'Service Worker',
  'WebStorage',
  'File System',
] as const;
const COOKIE_FILE_PATTERN = /^Default\/(Network\/)?Cookies(-journal)?$/;

export const isCookieFile = (name: string): boolean => COOKIE_FILE_PATTERN.test(name);

export interface TarLimits {
  readonly bytes: number;
  readonly entries: number;
}

const TAR_LIMITS: TarLimits = { bytes: 1024 ** 3, entries: 50_000 };
/**
 * Maximum number of entries that are read, as a multiple of the allowed number of files. Otherwise a folder full of
 * skipped entries would be read without end.
 */
const READ_ENTRIES_FACTOR = 4;
/** Bytes that an entry may take besides its content: its header, the pax header of a long name, and padding. */
const ENTRY_OVERHEAD_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 1024;
const DEPTH_MAX = 16;

/** A limit is exceeded, or an entry is not allowed. */
export class TarRefusedError extends Error {
  override readonly name = 'TarRefusedError';
}

/** Counts of the entries and bytes of a tar. They are updated while the tar is copied. */
export interface TarStats {
  bytes: number;
  entries: number;
  /** Entries that are not allowed and were therefore left out. */
  skipped: number;
}

export const emptyStats = (): TarStats => ({ bytes: 0, entries: 0, skipped: 0 });

export interface CheckOptions {
  /** What happens when an entry is not allowed: the entry is skipped, or the whole tar is refused. */
  readonly unexpectedEntryAction: 'skip' | 'refuse';
  readonly limits?: TarLimits;
  /** Returns true for an allowed file that must not be included. */
  readonly exclude?: (name: string) => boolean;
  /** Prepended to the names in the copy. */
  readonly prefix?: string;
  readonly stats?: TarStats;
}

/** A regular file at an allowed path. */
export interface CheckedFile {
  readonly name: string;
  readonly size: number;
  /** Must be read before the next file is requested. */
  readonly body: AsyncIterable<Buffer>;
}

/** Copies the allowed files to a new tar. Only name and size are taken from the headers of the source. */
export async function* checkedTar(source: AsyncIterable<Buffer>, options: CheckOptions): AsyncGenerator<Buffer, void> {
  for await (const { name, size, body } of checkedFiles(source, options)) {
    yield tarHeader(name, size);
    yield* body;
    yield tarPadding(size);
  }
  yield TAR_END;
}

export async function* checkedFiles(
  source: AsyncIterable<Buffer>,
  options: CheckOptions,
): AsyncGenerator<CheckedFile, void> {
  const { unexpectedEntryAction, limits = TAR_LIMITS, exclude, prefix = '', stats = emptyStats() } = options;
  for await (const entry of limitedEntries(source, limits)) {
    if (entry.kind === 'folder' && entry.size === 0) continue; // Folders are created for the files in them.
    const problem = problemOf(entry);
    if (problem && unexpectedEntryAction === 'refuse')
      throw new TarRefusedError(`${JSON.stringify(entry.name)} ${problem}`);
    if (problem) stats.skipped++;
    if (problem || exclude?.(entry.name)) continue;
    stats.entries++;
    stats.bytes += entry.size;
    assertWithinLimits(stats, limits);
    yield { name: `${prefix}${entry.name}`, size: entry.size, body: entry.body };
  }
}

/**
 * Reads the files that `isWanted` accepts into memory. Throws `TarRefusedError` if they have more than `bytesMax` bytes in
 * total.
 */
export async function readFiles(
  source: AsyncIterable<Buffer>,
  isWanted: (name: string) => boolean,
  bytesMax: number,
): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  for await (const { name, kind, size, body } of limitedEntries(source, TAR_LIMITS)) {
    if (kind !== 'file' || !isWanted(name)) continue;
    bytes += size;
    if (bytes > bytesMax) throw new TarRefusedError(`the requested files are larger than ${bytesMax} bytes in total`);
    // Copied into one buffer, because concatenating all parts at the end would block the event loop. The body has
    // exactly `size` bytes.
    const file = Buffer.allocUnsafeSlow(size);
    let at = 0;
    for await (const part of body) at += part.copy(file, at);
    files.set(name, file);
  }
  return files;
}

export async function* tarOf(files: ReadonlyMap<string, Buffer>): AsyncGenerator<Buffer, void> {
  for (const [name, bytes] of files) {
    yield tarHeader(name, bytes.length);
    yield bytes;
    yield tarPadding(bytes.length);
  }
  yield TAR_END;
}

async function* limitedEntries(source: AsyncIterable<Buffer>, limits: TarLimits): AsyncGenerator<TarEntry, void> {
  const readEntriesMax = READ_ENTRIES_FACTOR * limits.entries;
  let readEntryCount = 0;
  for await (const entry of readTarEntries(source, limits.bytes + readEntriesMax * ENTRY_OVERHEAD_BYTES_MAX)) {
    if (++readEntryCount > readEntriesMax)
      throw new TarRefusedError(`the archive has more than ${readEntriesMax} entries`);
    yield entry;
  }
}

function assertWithinLimits({ bytes, entries }: TarStats, limits: TarLimits): void {
  if (bytes > limits.bytes) throw new TarRefusedError(`the archive has more than ${limits.bytes} bytes`);
  if (entries > limits.entries) throw new TarRefusedError(`the archive has more than ${limits.entries} files`);
}

function problemOf({ name, kind }: TarEntry): string | undefined {
  if (kind !== 'file') return `is not a regular file (${kind})`;
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `has a name of more than ${NAME_BYTES_MAX} bytes`;
  if (/[\0-\x1f\x7f\uFFFD]/.test(name)) return 'has a name with invalid characters';
  const segments = name.split('/');
  if (segments.length > DEPTH_MAX) return `is nested more than ${DEPTH_MAX} levels deep`;
  if (segments.some(segment => segment === '' || segment === '.' || segment === '..')) return 'has an invalid path';
  const [profile, storedEntry] = segments;
  const isStoredPart =
    profile === 'Default' &&
    STORED_ENTRIES.some(known => known === storedEntry) &&
    (storedEntry !== 'Network' || isCookieFile(name));
  return isStoredPart ? undefined : 'is not one of the stored parts of a profile';
}
