// Opens a file in a folder with hostile content. The path is opened component by component and never through a link,
// and the file must be a regular file with one hard link. The opened file is the one that was checked, even if the
// folder changes meanwhile.
import { constants } from 'node:fs';
import { type FileHandle, open, opendir } from 'node:fs/promises';
import { hasCode } from './durable.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** The file exists but must not be read: it is a link, a pipe, a folder, or a file of another user. */
export class NotAPlainFile extends Error {
  override readonly name = 'NotAPlainFile';
}

/** Opens a file. `folder` is trusted, but the components of `path` are not. Undefined if the file does not exist. */
export async function openHostileFile(
  folder: string,
  path: readonly [string, ...string[]],
  options: { readonly uid: number | undefined },
): Promise<FileHandle | undefined> {
  const invalidComponent = path.find(part => part === '' || part === '.' || part === '..' || /[/\0]/.test(part));
  if (invalidComponent !== undefined)
    throw new NotAPlainFile(`${JSON.stringify(invalidComponent)} is not a valid file name`);
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    for (const part of path.slice(0, -1))
      handle = await openComponent(handle, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // Without O_NONBLOCK, opening a pipe without a writer would block.
    handle = await openComponent(handle, path.at(-1) ?? '', O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    await assertPlainFile(handle, options.uid);
    return handle;
  } catch (error) {
    await handle?.close();
    if (hasCode(error, 'ENOENT')) return undefined;
    if (hasCode(error, 'ELOOP') || hasCode(error, 'ENOTDIR') || hasCode(error, 'ENXIO'))
      throw new NotAPlainFile('it is a link, or not a regular file', { cause: error });
    throw error;
  }
}

/**
 * Opens a path component relative to an open folder, through /proc, because Node has no openat(2). Closes that folder.
 */
async function openComponent(parent: FileHandle, part: string, flags: number): Promise<FileHandle> {
  try {
    return await open(`/proc/self/fd/${parent.fd}/${part}`, flags);
  } finally {
    await parent.close();
  }
}

async function assertPlainFile(file: FileHandle, uid: number | undefined): Promise<void> {
  const stats = await file.stat();
  if (!stats.isFile()) throw new NotAPlainFile('it is not a regular file');
  if (stats.nlink !== 1) throw new NotAPlainFile(`it has ${stats.nlink} hard links`);
  if (stats.uid !== (uid ?? process.getuid?.())) throw new NotAPlainFile('it belongs to another user');
}

/** Returns at most `max` names from a folder. Returns none if the path is not a folder. */
export async function listHostileFolder(folder: string, name: string, max: number): Promise<readonly string[]> {
  let handle: FileHandle | undefined;
  try {
    handle = await openComponent(
      await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
      name,
      O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
    );
    const names: string[] = [];
    for await (const entry of await opendir(`/proc/self/fd/${handle.fd}`)) {
      names.push(entry.name);
      if (names.length >= max) break;
    }
    return names;
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENOTDIR'].some(code => hasCode(error, code))) return [];
    throw error;
  } finally {
    await handle?.close();
  }
}
