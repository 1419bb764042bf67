// npm packages cannot contain symbolic links, so PostgreSQL's package creates the links between its libraries in an
// install script. If install scripts are not allowed, the links are missing. This module creates them, and changes
// nothing that exists.
import { randomBytes } from 'node:crypto';
import { lstat, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Fault, reason } from '../../../kit/fault.ts';

interface Link {
  /** The path of the existing file, relative to the package. */
  readonly source: string;
  /** The path of the link, relative to the package. */
  readonly target: string;
}

/**
 * Creates the missing links, and returns their number. Several processes can do this at the same time, because each
 * link is created by a rename.
 */
export async function linkLibraries(packageRoot: string): Promise<number> {
  let createdCount = 0;
  for (const link of await readLinks(packageRoot)) {
    const target = resolve(packageRoot, link.target);
    if (await fileExists(target)) continue;
    await makeLink(resolve(packageRoot, link.source), target);
    createdCount += 1;
  }
  return createdCount;
}

async function readLinks(packageRoot: string): Promise<Link[]> {
  const parsedLinks: unknown = JSON.parse(await readFile(join(packageRoot, 'native', 'pg-symlinks.json'), 'utf8'));
  const isInside = (path: string): boolean => resolve(packageRoot, path).startsWith(packageRoot + sep);
  const links = Array.isArray(parsedLinks) ? parsedLinks.filter(isLink) : [];
  return links.filter(link => isInside(link.source) && isInside(link.target));
}

const isLink = (value: unknown): value is Link =>
  typeof value === 'object' &&
  value !== null &&
  'source' in value &&
  'target' in value &&
  typeof value.source === 'string' &&
  typeof value.target === 'string';

const fileExists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function makeLink(source: string, target: string): Promise<void> {
  const temporaryLink = `${target}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    await symlink(relative(dirname(target), source), temporaryLink);
    await rename(temporaryLink, target);
  } catch (error) {
    await rm(temporaryLink, { force: true });
    throw new Fault(
      'database_binaries_missing',
      `The symbolic link ${target} to a PostgreSQL library cannot be created: ${reason(error)}.`,
      {
        advice: 'Run npm rebuild as the user who owns node_modules.',
        cause: error,
      },
    );
  }
}
