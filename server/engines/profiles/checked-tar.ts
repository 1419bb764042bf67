// What may stand in the archive of a profile: ordinary files at known places, so many, so large, so deep. Everything else
// that a hostile folder may hold (links, devices, pipes, odd names) is left out when it is packed, and refused when an
// archive that should not have it is unpacked.
import { readTarEntries, type TarEntry } from './tar-reader.ts';
import { TAR_END, tarHeader, tarPadding } from './tar-writer.ts';

/** Cookies, storage of sites, and what makes it work. No history, no passwords, no caches of the network, no settings. */
export const KEPT = [
  'Cookies',
  'Cookies-journal',
  'Network',
  'Local Storage',
  'IndexedDB',
  'Service Worker',
  'WebStorage',
  'File System',
] as const;
const COOKIES = /^Default\/(Network\/)?Cookies(-journal)?$/;

export const isCookieFile = (name: string): boolean => COOKIES.test(name);

export interface TarBounds {
  readonly bytes: number;
  readonly entries: number;
}

export const TAR_BOUNDS: TarBounds = { bytes: 1024 ** 3, entries: 50_000 };
/** Entries of any kind, so that a folder full of what is left out is not walked for ever. */
const SEEN_FOR_EACH = 4;
/** A file's header, its name's header, and what fills up the last block; the rest is for what is left out. */
const OVERHEAD_BYTES = 4096;
const NAME_BYTES_MAX = 1024;
const DEPTH_MAX = 16;

/** More than a bound allows, or something that must not be there. */
export class TarRefused extends Error {
  override readonly name = 'TarRefused';
}

/** Counted while it is copied. */
export interface TarFacts {
  bytes: number;
  entries: number;
  /** Entries that were left out. */
  skipped: number;
}

export const noFacts = (): TarFacts => ({ bytes: 0, entries: 0, skipped: 0 });

export interface CheckWish {
  /** What stands in the way is left out, or the reason to refuse the whole. */
  readonly strange: 'skip' | 'refuse';
  readonly bounds?: TarBounds;
  /** Further files to leave out. */
  readonly without?: (name: string) => boolean;
  /** What the names begin with in the copy. */
  readonly under?: string;
  readonly facts?: TarFacts;
}

/** What may pass: an ordinary file at a place that belongs to what is kept. */
export interface CheckedFile {
  readonly name: string;
  readonly size: number;
  /** To be read before the next one. */
  readonly body: AsyncIterable<Buffer>;
}

/** The same tar with what may pass, written anew: of the source's headers nothing survives but name and size. */
export async function* checkedTar(source: AsyncIterable<Buffer>, wish: CheckWish): AsyncGenerator<Buffer, void> {
  for await (const { name, size, body } of checkedFiles(source, wish)) {
    yield tarHeader(name, size);
    yield* body;
    yield tarPadding(size);
  }
  yield TAR_END;
}

export async function* checkedFiles(source: AsyncIterable<Buffer>, wish: CheckWish): AsyncGenerator<CheckedFile, void> {
  const { strange, bounds = TAR_BOUNDS, without, under = '', facts = noFacts() } = wish;
  for await (const entry of boundedEntries(source, bounds)) {
    if (entry.kind === 'folder' && entry.size === 0) continue; // Folders come with their files.
    const problem = problemOf(entry);
    if (problem && strange === 'refuse') throw new TarRefused(`${JSON.stringify(entry.name)} ${problem}`);
    if (problem) facts.skipped++;
    if (problem || without?.(entry.name)) continue;
    facts.entries++;
    facts.bytes += entry.size;
    demandWithin(facts, bounds);
    yield { name: `${under}${entry.name}`, size: entry.size, body: entry.body };
  }
}

/** Reads small files of an archive into memory. */
export async function readFiles(
  source: AsyncIterable<Buffer>,
  isWanted: (name: string) => boolean,
  bytesMax: number,
): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  for await (const { name, kind, size, body } of boundedEntries(source, TAR_BOUNDS)) {
    if (kind !== 'file' || !isWanted(name)) continue;
    bytes += size;
    if (bytes > bytesMax) throw new TarRefused(`what is to be read of it is larger than ${bytesMax} bytes`);
    // Not joined at the end, which would be a long turn of the event loop. The body has exactly as many bytes.
    const file = Buffer.allocUnsafeSlow(size);
    let at = 0;
    for await (const part of body) at += part.copy(file, at);
    files.set(name, file);
  }
  return files;
}

/** A tar of these files. */
export async function* tarOf(files: ReadonlyMap<string, Buffer>): AsyncGenerator<Buffer, void> {
  for (const [name, bytes] of files) {
    yield tarHeader(name, bytes.length);
    yield bytes;
    yield tarPadding(bytes.length);
  }
  yield TAR_END;
}

async function* boundedEntries(source: AsyncIterable<Buffer>, bounds: TarBounds): AsyncGenerator<TarEntry, void> {
  const seenMax = SEEN_FOR_EACH * bounds.entries;
  let seen = 0;
  for await (const entry of readTarEntries(source, bounds.bytes + seenMax * OVERHEAD_BYTES)) {
    if (++seen > seenMax) throw new TarRefused(`it has more than ${seenMax} entries`);
    yield entry;
  }
}

function demandWithin({ bytes, entries }: TarFacts, bounds: TarBounds): void {
  if (bytes > bounds.bytes) throw new TarRefused(`it holds more than ${bounds.bytes} bytes`);
  if (entries > bounds.entries) throw new TarRefused(`it holds more than ${bounds.entries} files`);
}

function problemOf({ name, kind }: TarEntry): string | undefined {
  if (kind !== 'file') return `is no ordinary file (${kind})`;
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return 'has too long a name';
  if (/[\0-\x1f\x7f\uFFFD]/.test(name)) return 'has a name that is no text';
  const steps = name.split('/');
  if (steps.length > DEPTH_MAX) return 'lies too deep';
  if (steps.some(step => step === '' || step === '.' || step === '..')) return 'has a name that leads elsewhere';
  const [profile, kept] = steps;
  const belongs =
    profile === 'Default' && KEPT.some(known => known === kept) && (kept !== 'Network' || isCookieFile(name));
  return belongs ? undefined : 'does not belong to what is kept';
}
