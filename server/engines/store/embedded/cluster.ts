// The cluster folder (data/pg): created atomically, and opened only by the major version that created it.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../../../kit/fault.ts';
import { runProgram } from '../run-program.ts';
import { type Binaries, findBinaries } from './find-binaries.ts';
import type { PostgresIdentity } from './identity.ts';

const INITDB_TIMEOUT_MS = 120_000;

export const clusterFolder = (dataDir: string): string => join(dataDir, 'pg');

/** The major version that created the cluster, as PostgreSQL records it. Undefined if there is no cluster yet. */
export function clusterMajor(dataDir: string): number | undefined {
  const folder = clusterFolder(dataDir);
  if (!existsSync(folder)) return undefined;
  const versionFile = join(folder, 'PG_VERSION');
  const major = existsSync(versionFile) ? Number(readFileSync(versionFile, 'utf8')) : Number.NaN;
  if (major > 0) return major;
  throw new Fault('data_folder_unusable', `${folder} exists, but is not a PostgreSQL cluster.`, {
    advice:
      'Move it elsewhere. Berth then creates an empty database at the next start. To get the data back, restore a backup into an empty data folder.',
  });
}

/**
 * Finds the binaries of the cluster's major version. After an update of the npm package to another major version, only
 * the packages of the operating system may still contain them.
 */
export async function binariesFor(dataDir: string, folder: string | undefined): Promise<Binaries> {
  const major = clusterMajor(dataDir);
  const folderCriterion = folder === undefined ? {} : { folder };
  const matchingBinaries = await findBinaries({ ...folderCriterion, ...(major === undefined ? {} : { major }) });
  if (matchingBinaries) return matchingBinaries;
  const installedBinaries = await findBinaries(folderCriterion);
  throw majorMismatchFault(dataDir, major ?? 0, installedBinaries?.version ?? 'none');
}

function majorMismatchFault(dataDir: string, major: number, installedVersion: string): Fault {
  const folder = clusterFolder(dataDir);
  return new Fault(
    'data_folder_version',
    `${folder} was created by PostgreSQL ${major}, but the installed version is ${installedVersion}. PostgreSQL cannot open files that were created by another major version.`,
    {
      advice:
        `Nothing was changed. Install PostgreSQL ${major} (Debian: apt install postgresql-${major}) to continue with it. Or migrate: ` +
        `run PostgreSQL ${major} on a copy of the folder, dump the database with pg_dump -U postgres postgres > berth.sql, move ${folder} elsewhere, ` +
        'start Berth once and stop it, and load the file with psql into the new cluster. Or load the file into your own server and set DATABASE_URL.',
      details: { clusterMajor: major, present: installedVersion },
    },
  );
}

/** Creates the cluster under another name and renames it, so that a crash leaves no incomplete cluster. */
export async function makeCluster(
  dataDir: string,
  binaries: Binaries,
  identity: PostgresIdentity,
  signal: AbortSignal,
): Promise<void> {
  const folder = clusterFolder(dataDir);
  const temporaryFolder = `${folder}.new`;
  await rm(temporaryFolder, { recursive: true, force: true });
  await mkdir(dataDir, { recursive: true });
  const initdbResult = await runProgram(
    identity.wrapCommand([join(binaries.folder, 'initdb'), ...INITDB_ARGUMENTS, '-D', temporaryFolder]),
    {
      timeoutMs: INITDB_TIMEOUT_MS,
      signal,
    },
  );
  if (initdbResult.code !== 0) {
    await rm(temporaryFolder, { recursive: true, force: true });
    throw new Fault(
      'data_folder_unusable',
      `PostgreSQL could not create its files in ${folder}: ${initdbResult.output}.`,
      {
        advice: 'Free some disk space, or make the folder writable for the user that Berth runs as.',
      },
    );
  }
  await rename(temporaryFolder, folder);
  await syncFolder(dataDir);
}

/** Only the folder of the socket controls access: any user who may enter this folder may connect. */
const INITDB_ARGUMENTS = [
  '--username=postgres',
  '--auth-local=trust',
  '--auth-host=reject',
  '--encoding=UTF8',
  '--locale=C.UTF-8',
  '--no-instructions',
];

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
