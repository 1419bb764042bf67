// Whether the disk of the data folder has room for one more session. limit-watch.ts enforces the limit of each session.
import { statfs } from 'node:fs/promises';
import type { DiskRoom } from './slots.ts';

/**
 * No session is started when less space than this is free. The database shares the disk, and its write-ahead log alone
 * may need this much. A browser needs some tens of megabytes before its first page.
 */
const MIN_FREE_BYTES = 256 * 1024 ** 2;

export async function diskRoom(folder: string): Promise<DiskRoom> {
  const { bavail, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, leastBytes: MIN_FREE_BYTES };
}
