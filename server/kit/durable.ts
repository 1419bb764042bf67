// Writes files that survive a power loss: each is written under a temporary name, synced and renamed, and then the
// folder is synced.
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * The maximum number of attempts to move a file. A concurrent removal of other files may remove the target folder while
 * it is empty, and the folder must then be created again.
 */
const ATTEMPTS_MAX = 5;

/** Syncs a folder, so that the names in it are as durable as the files that they refer to. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Like `mkdir -p`. Also syncs the parent of every folder that it created, so that the folders survive a power loss. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true });
  if (firstCreated === undefined) return;
  for (let createdFolder = folder; createdFolder.length >= firstCreated.length; createdFolder = dirname(createdFolder))
    await syncFolder(dirname(createdFolder));
}

/** Moves a synced file to its final path on the same disk. */
export async function moveDurably(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1)
    try {
      await makeFolder(dirname(to));
      await rename(from, to);
      return await syncFolder(dirname(to));
    } catch (error) {
      // ENOENT: the target folder was empty and was removed in the meantime. If `from` is the missing file, every
      // attempt fails.
      if (!hasCode(error, 'ENOENT') || attempt >= ATTEMPTS_MAX) throw error;
    }
}

/** Moves a finished file to a path where others may read it, atomically replacing the file there. */
export async function publishFile(from: string, to: string): Promise<void> {
  const file = await open(from, 'r');
  try {
    await file.chmod(0o644);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(from, to);
  await syncFolder(dirname(to));
}

/**
 * Runs `write` on a new file that only the current user may read. Resolves once the bytes of the file are on the disk.
 */
export async function writeSynced<T>(path: string, write: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, 'wx', 0o600);
  try {
    const result = await write(file);
    await file.sync();
    return result;
  } finally {
    await file.close();
  }
}

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
