// The log file of the embedded PostgreSQL, data/postgres.log. PostgreSQL writes to it directly. PostgreSQL therefore
// never blocks on this process, and its last lines before a crash are kept. The size of the file is bounded by copying
// and truncating it, which works because PostgreSQL writes in append mode.
import { closeSync, openSync } from 'node:fs';
import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { giveToFolderOwner } from '../../../kit/folder-owner.ts';

const LOG_MAX_BYTES = 4 * 1024 ** 2;
const TAIL_BYTES = 4_096;
const TAIL_LINES = 8;

const logFilePath = (dataDir: string): string => join(dataDir, 'postgres.log');

/** Opens the log for a child process. The caller closes the descriptor after the start. */
export function openServerLog(dataDir: string): { descriptor: number; close(): void } {
  const descriptor = openSync(logFilePath(dataDir), 'a', 0o600);
  giveToFolderOwner(descriptor, dataDir);
  return { descriptor, close: () => closeSync(descriptor) };
}

/**
 * If the log exceeds `maxBytes`, copies it to `postgres.log.1` and truncates it. Lines written between the copy and the
 * truncation are lost.
 */
export async function rotateServerLog(dataDir: string, maxBytes = LOG_MAX_BYTES): Promise<void> {
  const path = logFilePath(dataDir);
  const size = await serverLogSize(dataDir);
  if (size <= maxBytes) return;
  await copyFile(path, `${path}.1`);
  await truncate(path);
}

export const serverLogSize = (dataDir: string): Promise<number> =>
  stat(logFilePath(dataDir)).then(
    found => found.size,
    () => 0,
  );

/** Returns the last lines written after the offset `from`, for an error message. */
export async function lastLogLines(dataDir: string, from = 0): Promise<string> {
  const handle = await open(logFilePath(dataDir), 'r').catch(() => undefined);
  if (!handle) return '';
  try {
    const { size } = await handle.stat();
    const start = Math.max(from, size - TAIL_BYTES, 0);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(0, size - start)), { position: start });
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-TAIL_LINES).join('\n');
  } finally {
    await handle.close();
  }
}
