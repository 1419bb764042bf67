// How much a hostile folder holds, looked at without following a link and without ever taking long: the walk stops as soon
// as a bound is passed. What follows from that is somebody else's business.
//
// Every box is looked at every few seconds, so the walk asks the kernel directly: through the thread pool each entry costs
// ten times as much processor time. It lets others work after each handful.
import { type Dir, type Dirent, lstatSync, opendirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Bounds {
  readonly bytes: number;
  readonly entries: number;
  readonly depth: number;
}

export interface Measured {
  /** Space taken on disk, not the apparent size. */
  readonly bytes: number;
  readonly entries: number;
  /** The bound at which the walk stopped. */
  readonly over?: keyof Bounds;
}

const BLOCK_BYTES = 512;
/** About a millisecond. */
const ENTRIES_A_TURN = 100;
const SLASH = Buffer.from('/');

interface Folder {
  readonly path: Buffer;
  readonly depth: number;
}

/** `signal`: what was seen until then. */
export async function measure(folder: string, bounds: Bounds, signal?: AbortSignal): Promise<Measured> {
  const waiting: Folder[] = [{ path: Buffer.from(folder), depth: 0 }];
  let [bytes, entries] = [0, 0];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (next.depth > bounds.depth) return { bytes, entries, over: 'depth' };
    for (const entry of entriesOf(next.path)) {
      if (entry === 'too deep') return { bytes, entries, over: 'depth' };
      entries += 1;
      bytes += entry.bytes;
      if (bytes > bounds.bytes) return { bytes, entries, over: 'bytes' };
      if (entries > bounds.entries) return { bytes, entries, over: 'entries' };
      if (entry.isFolder) waiting.push({ path: entry.path, depth: next.depth + 1 });
      if (entries % ENTRIES_A_TURN === 0) await nextTurn();
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

/** Names are bytes: a name that is not UTF-8 must not hide a file. What vanishes meanwhile is not there. */
function* entriesOf(path: Buffer): Generator<Entry | 'too deep', void> {
  const folder = attempt(() => opendirSync(path, { encoding: 'buffer' as BufferEncoding }));
  if (folder === 'too deep') yield folder;
  if (folder === undefined || folder === 'too deep') return;
  try {
    yield* entriesIn(folder, path);
  } finally {
    folder.closeSync();
  }
}

function* entriesIn(folder: Dir, path: Buffer): Generator<Entry | 'too deep', void> {
  for (let entry = folder.readSync(); entry; entry = folder.readSync()) {
    const own = joined(path, entry);
    const stats = attempt(() => lstatSync(own, { throwIfNoEntry: false }));
    if (stats === 'too deep') yield stats;
    else yield { path: own, bytes: (stats?.blocks ?? 0) * BLOCK_BYTES, isFolder: entry.isDirectory() };
  }
}

/** With the encoding `buffer` the name is a Buffer, which the types of `opendir` do not know. */
function joined(path: Buffer, entry: Dirent): Buffer {
  const name: unknown = entry.name;
  return Buffer.concat([path, SLASH, Buffer.isBuffer(name) ? name : Buffer.from(entry.name)]);
}

const GONE = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP']);

/** A path that is longer than the kernel takes is too deep: nobody hides a file behind it. */
function attempt<T>(look: () => T): T | 'too deep' | undefined {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENAMETOOLONG') return 'too deep';
    if (GONE.has(code)) return undefined;
    throw error;
  }
}
