// While a backup is being made, its folder in the data folder contains hard links to the files that it copies. Whoever
// removes a stored file links it there first, because the copied database may still refer to the file.
import { link, mkdir, readdir } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { hasCode } from '../../kit/durable.ts';

/** The name of the folder of a backup starts with this prefix. A random id follows. */
export const BACKUP_LINKS_PREFIX = '.backup-';

/** Links the file in the folder of each backup of this data folder. Does nothing if the file does not exist. */
export async function linkForBackups(dataDir: string, file: string): Promise<void> {
  for (const name of await readdir(dataDir))
    if (name.startsWith(BACKUP_LINKS_PREFIX)) await linkBelow(join(dataDir, name), relative(dataDir, file), file);
}

/**
 * Creates the folders of the path one at a time, so that the folder of a backup that has just ended is not created
 * again.
 */
async function linkBelow(linksDir: string, path: string, file: string): Promise<void> {
  let folder = linksDir;
  for (const part of dirname(path).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder, { mode: 0o700 }).catch(ignoreCodes('EEXIST', 'ENOENT'));
  }
  await tryLink(file, join(linksDir, path));
}

/** Returns without an error if the file no longer exists, or the link already exists. */
export async function tryLink(file: string, linkPath: string): Promise<void> {
  await link(file, linkPath).catch(ignoreCodes('EEXIST', 'ENOENT'));
}

const ignoreCodes =
  (...codes: readonly string[]) =>
  (error: unknown): void => {
    if (!codes.some(code => hasCode(error, code))) throw error;
  };
