// While a backup links the files that it copies, code that removes a stored or staged file links it in the folder of
// the backup first, because the copied database may still refer to the file.
import { link, mkdir, readdir } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { hasCode } from '../../kit/durable.ts';

/** The name of the folder of a backup, in the data folder, starts with this prefix. */
export const BACKUP_FOLDER_PREFIX = '.backup-';
/**
 * The prefix while the backup links files. The folder is renamed afterwards, so that the folder of a backup that is
 * killed while it copies does not keep the files that are removed later. That of a backup that is killed while it links
 * keeps them until the next start or backup.
 */
export const LINKING_PREFIX = `${BACKUP_FOLDER_PREFIX}linking-`;

const FOLDER_NAME_PATTERN = /^\.backup-(linking-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a backup gives a folder such a name, which ends with a random id. */
export const isBackupFolder = (name: string): boolean => FOLDER_NAME_PATTERN.test(name);

/**
 * Links the file in the folder of each backup of this data folder that is linking files. Never rejects, because a
 * backup must not prevent a removal.
 */
export async function linkForBackups(dataDir: string, file: string): Promise<void> {
  const names = await readdir(dataDir).catch(() => []);
  for (const name of names)
    if (name.startsWith(LINKING_PREFIX) && isBackupFolder(name))
      await linkBelow(join(dataDir, name), relative(dataDir, file), file).catch(() => {});
}

/** Returns without an error if the file no longer exists, or the link already exists. */
export async function tryLink(file: string, linkPath: string): Promise<void> {
  await link(file, linkPath).catch(ignoreCodes('EEXIST', 'ENOENT'));
}

/** Creates the folders of the path one at a time, so that a folder that has just been removed is not created again. */
async function linkBelow(linksDir: string, path: string, file: string): Promise<void> {
  let folder = linksDir;
  for (const part of dirname(path).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder, { mode: 0o700 }).catch(ignoreCodes('EEXIST', 'ENOENT'));
  }
  await tryLink(file, join(linksDir, path));
}

const ignoreCodes =
  (...codes: readonly string[]) =>
  (error: unknown): void => {
    if (!codes.some(code => hasCode(error, code))) throw error;
  };
