// The folder of PostgreSQL's Unix socket: accessible to this user only, with a path short enough for a socket address.
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, realpath, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault } from '../../../kit/fault.ts';

export const SOCKET_PORT = 5432;

/** A sockaddr_un path holds 107 bytes, and PostgreSQL creates a lock file with a longer name beside the socket. */
const SOCKET_PATH_MAX_BYTES = 100;
/** Root uses /run, where only root can write. Other users use /tmp, where somebody else may have created the path. */
const FALLBACK_ROOT = process.getuid?.() === 0 ? '/run' : '/tmp';

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Creates the socket folder. The same data folder always gives the same path, so that a command finds the server's
 * socket.
 */
export async function makeSocketFolder(dataDir: string, owner: Owner): Promise<string> {
  const folderInDataDir = join(dataDir, 'run');
  if (!fitsSocketPath(folderInDataDir)) return makeInSharedFolder(await fallbackPath(dataDir, owner.uid), owner);
  await makeOwnedFolder(folderInDataDir, owner);
  await chmod(folderInDataDir, 0o700);
  return folderInDataDir;
}

/** Removes a socket folder in /run or /tmp if it is empty. It is not empty while another process uses the socket. */
export async function removeSocketFolder(folder: string): Promise<void> {
  if (dirname(folder) === FALLBACK_ROOT) await rmdir(folder).catch(() => {});
}

/** Whether PostgreSQL accepts this folder. It parses the setting as a comma-separated list with quotes and spaces. */
const fitsSocketPath = (folder: string): boolean =>
  Buffer.byteLength(join(folder, `.s.PGSQL.${SOCKET_PORT}`)) < SOCKET_PATH_MAX_BYTES && !/[\s,"]/.test(folder);

async function fallbackPath(dataDir: string, uid: number): Promise<string> {
  const digest = createHash('sha256').update(await realpath(dataDir));
  return join(FALLBACK_ROOT, `berth-${uid}-${digest.digest('hex').slice(0, 24)}`);
}

/** Other users may have created something at this path, so it is checked, not trusted. */
async function makeInSharedFolder(folder: string, owner: Owner): Promise<string> {
  await makeOwnedFolder(folder, owner);
  const stats = await lstat(folder);
  if (stats.isDirectory() && stats.uid === owner.uid && (stats.mode & 0o077) === 0) return folder;
  throw new Fault(
    'data_folder_unusable',
    `The socket folder ${folder} must be a folder that is owned by the user that PostgreSQL runs as and is not accessible to other users.`,
    {
      advice:
        'Remove it, or set BERTH_DATA_DIR to a path that is shorter than 80 bytes and contains no spaces, commas or double quotes.',
    },
  );
}

async function makeOwnedFolder(folder: string, owner: Owner): Promise<void> {
  const wasCreated = await mkdir(folder, { mode: 0o700 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (wasCreated && process.getuid?.() === 0) await chown(folder, owner.uid, owner.gid);
}
