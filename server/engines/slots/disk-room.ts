// Whether the disk under the data folder has room for one more session. What a single session may take is limit-watch.ts.
import { statfs } from 'node:fs/promises';
import type { DiskRoom } from './slots.ts';

/**
 * Below this no session is started: the database shares the disk, and its log alone may need as much. A browser needs
 * some tens of megabytes before its first page.
 */
const LEAST_BYTES = 256 * 1024 ** 2;

export async function diskRoom(folder: string): Promise<DiskRoom> {
  const { bavail, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, leastBytes: LEAST_BYTES };
}
