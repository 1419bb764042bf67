// Files that are still there after a power cut: written beside, synced, renamed, and the folder that names them synced too.
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A folder that another one prunes at the same moment is made again. */
const TRIES_MAX = 5;

/** Makes the names in a folder as durable as the files that they name. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Like `mkdir -p`, with every folder that it made as durable as the file that will stand in it. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

/** Renames a file of the same disk, synced already, to where it is to stand. */
export async function moveDurably(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1)
    try {
      await makeFolder(dirname(to));
      await rename(from, to);
      return await syncFolder(dirname(to));
    } catch (error) {
      // The folder was empty for a moment, and was taken away. A missing `from` fails every time.
      if (!isCode(error, 'ENOENT') || attempt >= TRIES_MAX) throw error;
    }
}

/** Puts a finished file of ours where others may read it, in place of the one that has its name, with all of it or none. */
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

/** Runs `write` on a new file that only we may read, and returns once its bytes are on the disk. */
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

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
