// Opens a file in a folder that somebody hostile fills: step by step, never through a link, and only an ordinary file with
// one name. What is opened is what was checked, whatever the folder becomes meanwhile.
import { constants } from 'node:fs';
import { type FileHandle, open, opendir } from 'node:fs/promises';
import { isCode } from './durable.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** It is there, and it is nothing that one reads: a link, a pipe, a folder, somebody else's file. */
export class NotAPlainFile extends Error {
  override readonly name = 'NotAPlainFile';
}

/** `folder` is ours to name; `path` leads on from it, one name a part. Undefined when there is nothing. */
export async function openHostile(
  folder: string,
  path: readonly [string, ...string[]],
  options: { readonly uid: number | undefined },
): Promise<FileHandle | undefined> {
  const bad = path.find(part => part === '' || part === '.' || part === '..' || /[/\0]/.test(part));
  if (bad !== undefined) throw new NotAPlainFile(`${JSON.stringify(bad)} is no name`);
  let at: FileHandle | undefined;
  try {
    at = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    for (const part of path.slice(0, -1)) at = await step(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // Without O_NONBLOCK a pipe that nobody writes to would never open.
    at = await step(at, path.at(-1) ?? '', O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    await demandPlain(at, options.uid);
    return at;
  } catch (error) {
    await at?.close();
    if (isCode(error, 'ENOENT')) return undefined;
    if (isCode(error, 'ELOOP') || isCode(error, 'ENOTDIR') || isCode(error, 'ENXIO'))
      throw new NotAPlainFile('it is a link, or no file', { cause: error });
    throw error;
  }
}

/** There is no openat here; a descriptor's own path in /proc is the same thing. */
async function step(from: FileHandle, part: string, flags: number): Promise<FileHandle> {
  try {
    return await open(`/proc/self/fd/${from.fd}/${part}`, flags);
  } finally {
    await from.close();
  }
}

async function demandPlain(file: FileHandle, uid: number | undefined): Promise<void> {
  const found = await file.stat();
  if (!found.isFile()) throw new NotAPlainFile('it is no file');
  if (found.nlink !== 1) throw new NotAPlainFile(`it has ${found.nlink} names`);
  if (found.uid !== (uid ?? process.getuid?.())) throw new NotAPlainFile('it belongs to somebody else');
}

/** The names in a folder on the way, at most so many; none where it is no folder. */
export async function namesInHostile(folder: string, name: string, most: number): Promise<readonly string[]> {
  let at: FileHandle | undefined;
  try {
    at = await step(await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const names: string[] = [];
    for await (const entry of await opendir(`/proc/self/fd/${at.fd}`)) {
      names.push(entry.name);
      if (names.length >= most) break;
    }
    return names;
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENOTDIR'].some(code => isCode(error, code))) return [];
    throw error;
  } finally {
    await at?.close();
  }
}
