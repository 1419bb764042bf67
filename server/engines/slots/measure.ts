// How much a hostile folder holds, looked at without following a link and without ever taking long: the walk stops as soon
// as a bound is passed. What follows from that is somebody else's business.
import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';

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
    for await (const entry of entriesOf(next.path)) {
      if (signal?.aborted) return { bytes, entries };
      entries += 1;
      bytes += await sizeOf(entry.path);
      if (bytes > bounds.bytes) return { bytes, entries, over: 'bytes' };
      if (entries > bounds.entries) return { bytes, entries, over: 'entries' };
      if (entry.isFolder) waiting.push({ path: entry.path, depth: next.depth + 1 });
    }
  }
  return { bytes, entries };
}

/** Names are bytes: a name that is not UTF-8 must not hide a file. What vanishes meanwhile is not there. */
async function* entriesOf(path: Buffer): AsyncGenerator<{ path: Buffer; isFolder: boolean }> {
  const folder = await opendir(path, { encoding: 'buffer' as BufferEncoding }).catch(vanished);
  if (folder === undefined) return;
  for await (const entry of folder) yield { path: joined(path, entry), isFolder: entry.isDirectory() };
}

/** With the encoding `buffer` the name is a Buffer, which the types of `opendir` do not know. */
function joined(path: Buffer, entry: Dirent): Buffer {
  const name: unknown = entry.name;
  return Buffer.concat([path, SLASH, Buffer.isBuffer(name) ? name : Buffer.from(entry.name)]);
}

async function sizeOf(path: Buffer): Promise<number> {
  const stats = await lstat(path).catch(vanished);
  return stats === undefined ? 0 : stats.blocks * BLOCK_BYTES;
}

const GONE = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP']);

function vanished(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && GONE.has(String(error.code))) return undefined;
  throw error;
}
