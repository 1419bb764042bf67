// A folder in memory for the temporary files of tests, such as databases and browser profiles. Tests create thousands
// of files and remove them after seconds. ext4 without a journal does not reuse a removed inode for some time, and the
// search for a free inode took a tenth of the processor time of a session.
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';

const MEMORY_FOLDER = '/dev/shm';
/** The minimum free space in the folder and in memory. Five concurrent test files, with their browsers, use 2 GiB. */
const FREE_BYTES_MIN = 6 * 1024 ** 3;
/** Mount options with which tests fail, because tests start programs in this folder and change their user. */
const UNUSABLE_MOUNT_OPTIONS = ['ro', 'noexec', 'nosuid'];

/** Returns the folder, or undefined if it is not suitable. */
export function findMemoryFolder(): string | undefined {
  const [, , type, options = ''] = mountLineOf(MEMORY_FOLDER)?.split(' ') ?? [];
  if (type !== 'tmpfs' || options.split(',').some(option => UNUSABLE_MOUNT_OPTIONS.includes(option))) return undefined;
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK);
  } catch {
    return undefined;
  }
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
  return Math.min(bavail * bsize, freemem()) < FREE_BYTES_MIN ? undefined : MEMORY_FOLDER;
}

/** The line in /proc/mounts for the last mount at this folder. */
const mountLineOf = (folder: string): string | undefined =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .findLast(line => line.split(' ')[1] === folder);
