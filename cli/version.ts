// The version of this program and the commit that it was built from. In a release, package.json names both; in a
// checkout, the commit is read from Git's files.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import about from '../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '..');
/** The number of characters to which a commit id is shortened. */
const COMMIT_CHARS = 12;

/**
 * Returns the version, such as `1.2.3 (0a1b2c3d4e5f)`. The commit is omitted if neither a release nor a checkout names
 * it.
 */
export function versionText(root = ROOT): string {
  const commit = commitOfRelease(about) ?? commitOfCheckout(root);
  return commit === undefined ? about.version : `${about.version} (${abbreviate(commit)})`;
}

/**
 * Reads the field that `tools/release` writes to package.json. If there were uncommitted changes, the commit has a
 * suffix, as in `0a1b…-changed`.
 */
function commitOfRelease(manifest: object): string | undefined {
  return 'commit' in manifest && typeof manifest.commit === 'string' ? manifest.commit : undefined;
}

function abbreviate(commit: string): string {
  const [id = '', ...rest] = commit.split('-');
  return [id.slice(0, COMMIT_CHARS), ...rest].join('-');
}

/**
 * Reads Git's files, without starting Git. Undefined if there is no checkout, or if these files do not contain the
 * commit.
 */
function commitOfCheckout(root: string): string | undefined {
  try {
    const folder = gitFolder(root);
    const head = readText(join(folder, 'HEAD'));
    return head.startsWith('ref: ') ? commitOfRef(folder, head.slice('ref: '.length)) : head;
  } catch {
    return undefined;
  }
}

/** In a linked worktree, `.git` is a file that contains the path of the Git directory. */
function gitFolder(root: string): string {
  const path = join(root, '.git');
  return statSync(path).isDirectory() ? path : resolve(root, readText(path).replace(/^gitdir: /, ''));
}

function commitOfRef(folder: string, ref: string): string | undefined {
  const commonDirFile = join(folder, 'commondir');
  const commonFolder = existsSync(commonDirFile) ? resolve(folder, readText(commonDirFile)) : folder;
  if (existsSync(join(commonFolder, ref))) return readText(join(commonFolder, ref));
  const packedRefs = readText(join(commonFolder, 'packed-refs')).split('\n');
  return packedRefs.find(line => line.endsWith(` ${ref}`))?.split(' ', 1)[0];
}

const readText = (file: string): string => readFileSync(file, 'utf8').trim();
