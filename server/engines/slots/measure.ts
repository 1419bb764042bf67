// Measures the size of an untrusted folder. The walk follows no links and stops as soon as a limit is exceeded. The
// folder of a busy box is measured every few seconds, so the walk uses synchronous calls: in the thread pool each entry
// would cost ten times as much processor time. The walk yields to the event loop after every 100 entries.
import { type Dir, type Dirent, lstatSync, opendirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Bounds {
  readonly bytes: number;
  readonly entries: number;
  readonly depth: number;
}

export interface Measurement {
  /** Space taken up on the disk, not the apparent size of the files. */
  readonly bytes: number;
  readonly entries: number;
  /** The limit at which the walk stopped, or `unreadable` if it found a folder that the server may not read. */
  readonly stoppedBy?: keyof Bounds | 'unreadable';
}

const BLOCK_BYTES = 512;
/** Reading this many entries takes about a millisecond. */
const ENTRIES_PER_TURN = 100;
const SLASH = Buffer.from('/');

interface Folder {
  readonly path: Buffer;
  readonly depth: number;
}

/** Measures a folder. When `signal` aborts, returns the sums so far. */
export async function measure(folder: string, bounds: Bounds, signal?: AbortSignal): Promise<Measurement> {
  const foldersToVisit: Folder[] = [{ path: Buffer.from(folder), depth: 0 }];
  let [bytes, entries] = [0, 0];
  for (let nextFolder = foldersToVisit.pop(); nextFolder; nextFolder = foldersToVisit.pop()) {
    if (nextFolder.depth > bounds.depth) return { bytes, entries, stoppedBy: 'depth' };
    for (const entry of entriesOf(nextFolder.path)) {
      if (isStopReason(entry)) return { bytes, entries, stoppedBy: entry };
      entries += 1;
      bytes += entry.bytes;
      if (bytes > bounds.bytes) return { bytes, entries, stoppedBy: 'bytes' };
      if (entries > bounds.entries) return { bytes, entries, stoppedBy: 'entries' };
      if (entry.isFolder) foldersToVisit.push({ path: entry.path, depth: nextFolder.depth + 1 });
      if (entries % ENTRIES_PER_TURN === 0) await nextTurn();
      if (signal?.aborted) return { bytes, entries };
    }
  }
  return { bytes, entries };
}

interface Entry {
  readonly path: Buffer;
  readonly bytes: number;
  readonly isFolder: boolean;
}

/**
 * Yields the entries of a folder. Names are read as bytes, so that a name that is not UTF-8 cannot hide a file. Entries
 * that disappear during the walk are left out.
 */
function* entriesOf(path: Buffer): Generator<Entry | StopReason, void> {
  const folder = attempt(() => opendirSync(path, { encoding: 'buffer' as BufferEncoding }));
  if (isStopReason(folder)) yield folder;
  if (folder === undefined || isStopReason(folder)) return;
  try {
    yield* entriesIn(folder, path);
  } finally {
    folder.closeSync();
  }
}

function* entriesIn(folder: Dir, path: Buffer): Generator<Entry | StopReason, void> {
  for (let entry = folder.readSync(); entry; entry = folder.readSync()) {
    const entryPath = joinPath(path, entry);
    const stats = attempt(() => lstatSync(entryPath, { throwIfNoEntry: false }));
    if (isStopReason(stats)) yield stats;
    else yield { path: entryPath, bytes: (stats?.blocks ?? 0) * BLOCK_BYTES, isFolder: entry.isDirectory() };
  }
}

/**
 * Joins a path and the name of an entry. With the encoding `buffer` the name is a Buffer, although the type definitions
 * of `opendir` do not say so.
 */
function joinPath(path: Buffer, entry: Dirent): Buffer {
  const name: unknown = entry.name;
  return Buffer.concat([path, SLASH, Buffer.isBuffer(name) ? name : Buffer.from(entry.name)]);
}

const GONE_CODES = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

/**
 * Why the walk stopped at an entry that could hide further files. `depth`: a path is longer than the limit of the
 * kernel. `unreadable`: the box removed the permissions of a folder, so a server that does not run as root cannot read
 * it.
 */
type StopReason = 'depth' | 'unreadable';

const STOP_REASONS = new Map<string, StopReason>([
  ['ENAMETOOLONG', 'depth'],
  ['EACCES', 'unreadable'],
]);

const isStopReason = (value: unknown): value is StopReason => value === 'depth' || value === 'unreadable';

/** Runs a file system call. Returns undefined if the entry is gone. */
function attempt<T>(operation: () => T): T | StopReason | undefined {
  try {
    return operation();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const stop = STOP_REASONS.get(code);
    if (stop || GONE_CODES.has(code)) return stop;
    throw error;
  }
}
