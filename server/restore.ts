// `berth restore`: puts a backup into an empty data folder. Everything is first unpacked and checked next to its final
// location, so that a refused backup leaves nothing behind.
import { chmod, chown, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Config, readConfig } from './config.ts';
import type { Manifest } from './engines/backups/format.ts';
import { type OpenedBackup, openBackup } from './engines/backups/reader.ts';
import { lockDataFolder } from './engines/store/data-folder.ts';
import { findBinaries } from './engines/store/embedded/find-binaries.ts';
import { migrations } from './engines/store/migrations/index.ts';
import { syncFolder } from './kit/durable.ts';
import { Fault } from './kit/fault.ts';
import { Scope } from './kit/scope.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface RestoreResult {
  readonly path: string;
  readonly dataDir: string;
  readonly madeBy: string;
  readonly createdAt: string;
  readonly files: number;
  /** The parts of the installation that the backup does not contain, and how to restore these parts. */
  readonly notRestored: readonly string[];
}

const STAGE_FOLDER = '.restoring';
const LOCK_FILE = 'lock';
/** Moved last, because no command regards a folder without the database cluster as an installation. */
const CLUSTER_FOLDER = 'pg';
const BACKUP_NAME = /^berth-\d{8}T\d{6}Z\.zip$/;

/**
 * @throws Fault if the backup does not exist, the data folder is in use or not empty, or the backup is not compatible
 *   with the settings or the version of this program.
 */
export async function restore(env: Environment, source: string): Promise<RestoreResult> {
  const config = readConfig(env);
  const { dataDir } = config;
  const path = await backupFileIn(resolve(source));
  await assertEmpty(dataDir);
  const scope = new Scope();
  try {
    const backup = await openBackup(path);
    scope.defer(() => backup.close());
    await assertCompatible(config, backup.manifest);
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    scope.own(await lockDataFolder(dataDir, { waitMs: 0, role: 'command' }));
    await assertEmpty(dataDir);
    await installBackup(dataDir, backup);
    const { version: madeBy, createdAt, entries } = backup.manifest;
    return { path, dataDir, madeBy, createdAt, files: entries.length, notRestored: notRestoredParts(config) };
  } finally {
    await scope.close();
  }
}

/** Returns `source`. If `source` is a folder, returns the path of the newest backup in the folder. */
async function backupFileIn(source: string): Promise<string> {
  const stats = await stat(source).catch(() => undefined);
  if (!stats) throw new Fault('not_found', `The backup ${source} does not exist.`, { advice: 'Check the path.' });
  if (!stats.isDirectory()) return source;
  const newestName = (await readdir(source))
    .filter(name => BACKUP_NAME.test(name))
    .sort()
    .at(-1);
  if (newestName === undefined)
    throw new Fault('not_found', `The folder ${source} contains no backup (berth-TIME.zip).`, {
      advice: 'Pass the path of a backup, or of a folder that contains one.',
    });
  return join(source, newestName);
}

/**
 * Throws if the folder contains anything other than the stage and the lock file, which a killed restore may have left.
 */
async function assertEmpty(dataDir: string): Promise<void> {
  const names = await readdir(dataDir).catch(() => []);
  const otherNames = names.filter(name => name !== STAGE_FOLDER && name !== LOCK_FILE);
  if (otherNames.length === 0) return;
  throw new Fault(
    'data_folder_not_empty',
    `${dataDir} is not empty: it contains ${otherNames.sort().slice(0, 5).join(', ')}.`,
    {
      advice: 'Nothing was changed. Move its content to another place, or set BERTH_DATA_DIR to another folder.',
    },
  );
}

async function assertCompatible(config: Config, { version, database, files }: Manifest): Promise<void> {
  const kind = config.databaseUrl ? 'elsewhere' : 'embedded';
  if (database.kind !== kind)
    throw incompatibleBackup(
      kind === 'embedded' ? 'Set DATABASE_URL to its value at the time of the backup.' : 'Unset DATABASE_URL.',
    );
  if ((config.s3 ? 's3' : 'disk') !== files)
    throw incompatibleBackup(
      files === 's3' ? 'Set BERTH_S3_BUCKET to its value at the time of the backup.' : 'Unset BERTH_S3_BUCKET.',
    );
  if (database.kind === 'elsewhere') return;
  if (!Object.hasOwn(migrations, database.migration))
    throw new Fault('backup_newer', `The backup was made by Berth ${version}, which is newer than this program.`, {
      advice: 'Nothing was restored. Restore the backup with that version.',
    });
  if (!(await findBinaries({ major: database.major })))
    throw new Fault('backup_misfit', `The backup needs PostgreSQL ${database.major}, which was not found.`, {
      advice: `Nothing was restored. Install it (Debian: apt install postgresql-${database.major}).`,
    });
}

const incompatibleBackup = (advice: string): Fault =>
  new Fault('backup_misfit', 'The settings differ from those that the backup was made with.', {
    advice: `Nothing was restored. ${advice}`,
  });

async function installBackup(dataDir: string, backup: OpenedBackup): Promise<void> {
  const stage = join(dataDir, STAGE_FOLDER);
  const isRoot = process.getuid?.() === 0;
  const { mode, uid, gid } = backup.manifest.owner;
  try {
    await rm(stage, { recursive: true, force: true });
    await mkdir(stage, { mode: 0o700 });
    await backup.unpackInto(stage, { shouldSetOwners: isRoot });
    if (isRoot) for (const path of [dataDir, join(dataDir, LOCK_FILE)]) await chown(path, uid, gid);
    await chmod(dataDir, mode);
    const names = (await readdir(stage)).filter(name => name !== CLUSTER_FOLDER);
    for (const name of [...names, CLUSTER_FOLDER])
      if (name !== CLUSTER_FOLDER || backup.manifest.database.kind === 'embedded')
        await rename(join(stage, name), join(dataDir, name));
    await syncFolder(dataDir);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

const notRestoredParts = (config: Config): string[] => [
  ...(config.databaseUrl
    ? ['the database at DATABASE_URL: restore it with pg_restore before you start the server']
    : []),
  ...(config.s3
    ? [`the bucket ${config.s3.bucket}: it must contain the objects that it had at the time of the backup`]
    : []),
  ...(config.secret ? ['BERTH_SECRET: it must have the same value as at the time of the backup'] : []),
  ...(config.masterKey ? ['the master key: its setting must supply the same key as at the time of the backup'] : []),
];
