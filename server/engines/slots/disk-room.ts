// Whether the disk of the data folder has room for one more session. limit-watch.ts enforces the limit of each session.
import { statfs } from 'node:fs/promises';
import type { DiskRoom } from './slots.ts';

/**
 * No session is started when less space than this is free. The database is on the same disk, and its write-ahead log
 * alone may need this much. A browser needs a few tens of megabytes before its first page.
 */
const MIN_FREE_BYTES = 256 * 1024 ** 2;
/**
 * No session is started when fewer files than this can be created. A browser creates a few hundred files before its
 * first page.
 */
const MIN_FREE_FILES = 10_000;

export async function readDiskRoom(folder: string): Promise<DiskRoom> {
  const { bavail, bsize, files, ffree } = await statfs(folder);
  // File systems that create inodes when they are needed, such as Btrfs, report 0 as their number of inodes.
  const freeFiles = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  return { freeBytes: bavail * bsize, minFreeBytes: MIN_FREE_BYTES, freeFiles, minFreeFiles: MIN_FREE_FILES };
}
