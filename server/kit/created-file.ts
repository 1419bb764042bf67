// Small files, such as ids and secrets, that are created once and then only read.
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { hasCode } from './durable.ts';
import { giveToFolderOwner } from './folder-owner.ts';

/**
 * Returns the trimmed content of the file, which is created with mode 0600 if it is missing. Two processes that create
 * it at the same time get the same content. If the process is killed or the power fails, the file is complete or missing.
 */
export function readOrCreate(file: string, generate: () => string): string {
  const existingText = readIfPresent(file);
  if (existingText !== undefined) return existingText;
  const temporaryFile = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(temporaryFile, `${generate()}\n`, { mode: 0o600, flag: 'wx', flush: true });
  giveToFolderOwner(temporaryFile, dirname(file));
  try {
    linkSync(temporaryFile, file);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(temporaryFile);
  }
  syncFolder(dirname(file));
  return readFileSync(file, 'utf8').trim();
}

/** Undefined if there is no such file. Otherwise its trimmed content. */
export function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
