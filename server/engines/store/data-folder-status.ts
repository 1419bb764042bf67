// Reports the state of a data folder, for `berth doctor`, without changing its data. To find the owner of the lock, it
// tries to take the lock for a moment.
import { existsSync } from 'node:fs';
import { type FolderOwner, findFolderOwner } from './data-folder.ts';
import { clusterMajor } from './embedded/cluster.ts';
import { type Binaries, findBinaries } from './embedded/find-binaries.ts';
import { isResponding } from './embedded/is-responding.ts';
import { findPostmaster } from './embedded/postmaster.ts';

export interface DataFolderStatus {
  readonly exists: boolean;
  /** The current owner of the lock. */
  readonly owner?: FolderOwner | 'unknown';
  /** The PostgreSQL major version that created the cluster. Absent before the first start. */
  readonly clusterMajor?: number;
  /** The PostgreSQL that would be started. Absent if none of the cluster's major version is installed. */
  readonly binaries?: Binaries;
  readonly postgres: 'answers' | 'silent' | 'stopped';
}

/**
 * Throws the fault that a start would report: the folder is unusable, or no PostgreSQL that can run on this machine was
 * found.
 */
export async function dataFolderStatus(dataDir: string): Promise<DataFolderStatus> {
  const exists = existsSync(dataDir);
  const owner = exists ? await findFolderOwner(dataDir) : undefined;
  const major = exists ? clusterMajor(dataDir) : undefined;
  const binaries = await findBinaries(major === undefined ? {} : { major });
  return {
    exists,
    ...(owner ? { owner } : {}),
    ...(major === undefined ? {} : { clusterMajor: major }),
    ...(binaries ? { binaries } : {}),
    postgres: await postgresIn(dataDir),
  };
}

async function postgresIn(dataDir: string): Promise<DataFolderStatus['postgres']> {
  const foundPostmaster = findPostmaster(dataDir);
  if (!foundPostmaster) return 'stopped';
  return (await isResponding(foundPostmaster)) ? 'answers' : 'silent';
}
