// A folder in memory for the temporary files of tests: databases and browser profiles of thousands of files, removed after
// seconds. ext4 without a journal does not reuse an inode soon after its removal: looking for another one took a tenth of the
// processor time of a session.
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';

const FOLDER = '/dev/shm';
/** Five concurrent test files, with their browsers, need 2 GiB. */
const ROOM_BYTES_MIN = 6 * 1024 ** 3;
/** Tests start programs from temporary folders, and change their user. */
const HINDERING_OPTIONS = ['ro', 'noexec', 'nosuid'];

/** Undefined if the machine has no suitable folder. */
export function memoryFolder(): string | undefined {
  const [, , type, options = ''] = lineOf(FOLDER)?.split(' ') ?? [];
  if (type !== 'tmpfs' || options.split(',').some(option => HINDERING_OPTIONS.includes(option))) return undefined;
  try {
    accessSync(FOLDER, constants.W_OK);
  } catch {
    return undefined;
  }
  const { bavail, bsize } = statfsSync(FOLDER);
  return Math.min(bavail * bsize, freemem()) < ROOM_BYTES_MIN ? undefined : FOLDER;
}

/** The line of the most recent mount at this folder. */
const lineOf = (folder: string): string | undefined =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .findLast(line => line.split(' ')[1] === folder);
