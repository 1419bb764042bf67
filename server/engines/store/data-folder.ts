// Locks a data folder, so that only one process at a time uses it. When a process dies, the kernel releases its lock.
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { Fault, reason } from '../../kit/fault.ts';
import { giveToFolderOwner } from '../../kit/folder-owner.ts';
import type { Closeable } from '../../kit/scope.ts';
import { runProgram } from './run-program.ts';

/**
 * A server keeps the lock while it is running. A command keeps the lock only briefly, while it runs its own PostgreSQL
 * server.
 */
export type FolderRole = 'server' | 'command';

export interface FolderOwner {
  readonly pid: number;
  readonly role: FolderRole;
}

export interface LockOptions {
  /** How long to wait for another owner to release the lock; 0: try only once. */
  readonly waitMs: number;
  /** By default `server`. */
  readonly role?: FolderRole;
  readonly signal?: AbortSignal | undefined;
}

const LOCK_FILE_NAME = 'lock';
const FLOCK_CONFLICT_CODE = 75;
/** The time that flock(1) may need to start and exit, beyond its own time limit. */
const FLOCK_SLACK_MS = 5_000;

/** Locks the folder, or throws `data_folder_in_use` with the owner's pid. Creates the folder if it is missing. */
export async function lockDataFolder(dataDir: string, options: LockOptions): Promise<Closeable> {
  const descriptor = openLockFile(dataDir);
  try {
    if (!(await flock(descriptor, options.waitMs, options.signal))) throw folderInUseFault(dataDir);
    assertSameFile(descriptor, dataDir);
    writeOwner(descriptor, { pid: process.pid, role: options.role ?? 'server' });
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  return { close: once(() => releaseLock(descriptor)) };
}

/** Returns the owner of the lock, if any. Tries to take the lock, which starts a process. */
export async function findFolderOwner(dataDir: string): Promise<FolderOwner | 'unknown' | undefined> {
  try {
    const lock = await lockDataFolder(dataDir, { waitMs: 0, role: 'command' });
    await lock.close();
    return undefined;
  } catch (error) {
    if (error instanceof Fault && error.code === 'data_folder_in_use') return readOwner(dataDir) ?? 'unknown';
    throw error;
  }
}

/**
 * Returns the last owner that is recorded in the lock file. Only a failed attempt to lock shows that this owner is
 * still running.
 */
export function readOwner(dataDir: string): FolderOwner | undefined {
  const match = /^(\d+) (server|command)\n/.exec(readLockFile(dataDir));
  return match?.[1] ? { pid: Number(match[1]), role: match[2] === 'command' ? 'command' : 'server' } : undefined;
}

function readLockFile(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, LOCK_FILE_NAME), 'utf8');
  } catch {
    return '';
  }
}

function openLockFile(dataDir: string): number {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const path = join(dataDir, LOCK_FILE_NAME);
    const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    giveToFolderOwner(descriptor, dataDir);
    return descriptor;
  } catch (error) {
    throw new Fault('data_folder_unusable', `The data folder ${dataDir} is not writable: ${reason(error)}.`, {
      advice: 'Make it writable for the user that Berth runs as, or set BERTH_DATA_DIR to another folder.',
      cause: error,
    });
  }
}

/**
 * Node has no flock, but flock(1) can lock an inherited descriptor. The lock belongs to the open file, which this
 * process keeps open after flock(1) has exited. The kernel releases it when this process ends for any reason, so there
 * are no stale locks and no helper process. Unlike an abstract Unix socket, the lock also holds between network
 * namespaces and between containers that share a volume.
 */
async function flock(descriptor: number, waitMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  const seconds = String(waitMs / 1000);
  const command = [
    'flock',
    '--exclusive',
    '--timeout',
    seconds,
    '--conflict-exit-code',
    String(FLOCK_CONFLICT_CODE),
    '3',
  ];
  const result = await runProgram(command, { timeoutMs: waitMs + FLOCK_SLACK_MS, descriptor, signal });
  if (result.code === 0 || result.code === FLOCK_CONFLICT_CODE) return result.code === 0;
  throw new Fault('data_folder_unusable', `The data folder cannot be locked: ${result.output}.`, {
    advice: 'Set BERTH_DATA_DIR to a folder on a file system that supports file locks.',
  });
}

/** Throws if the folder was removed and created again during the wait, because the lock is then on the old file. */
function assertSameFile(descriptor: number, dataDir: string): void {
  const lockedFile = fstatSync(descriptor);
  const currentFile = statSync(join(dataDir, LOCK_FILE_NAME), { throwIfNoEntry: false });
  if (currentFile?.ino === lockedFile.ino && currentFile.dev === lockedFile.dev) return;
  throw new Fault('data_folder_unusable', `The data folder ${dataDir} was replaced while Berth waited for its lock.`, {
    advice: 'Start Berth again.',
  });
}

function writeOwner(descriptor: number, owner: FolderOwner): void {
  ftruncateSync(descriptor);
  writeSync(descriptor, `${owner.pid} ${owner.role}\n`, 0);
}

function releaseLock(descriptor: number): void {
  ftruncateSync(descriptor);
  closeSync(descriptor);
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

function folderInUseFault(dataDir: string): Fault {
  const owner = readOwner(dataDir);
  const holder = owner ? `process ${owner.pid}` : 'another process';
  return new Fault('data_folder_in_use', `The data folder ${dataDir} is in use by ${holder}.`, {
    advice: 'Stop that process, or set BERTH_DATA_DIR to another folder.',
    ...(owner ? { details: { pid: owner.pid } } : {}),
  });
}
