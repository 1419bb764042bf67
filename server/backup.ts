// `berth backup`: the embedded database and the files on disk as of one moment, whether or not the server is running. A
// row is committed after its files are stored, so the files are copied after the database. A file may be removed in the
// meantime, so the backup makes hard links to all files when the backup of the database ends, and copies the files from
// these links. If a process removes a stored or staged file before the backup has linked it, that process makes the
// link (engines/artifacts/backup-links.ts).
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { type Config, readConfig } from './config.ts';
import { tryLink } from './engines/artifacts/backup-links.ts';
import type { ManifestHead } from './engines/backups/format.ts';
import { BackupWriter } from './engines/backups/writer.ts';
import {
  type BaseBackup,
  type BackupResult as ClusterBackupResult,
  startBaseBackup,
} from './engines/store/base-backup.ts';
import { type Clock, systemClock } from './kit/clock.ts';
import { hasCode } from './kit/durable.ts';
import { Fault } from './kit/fault.ts';
import { silentLog } from './kit/log.ts';
import { Scope } from './kit/scope.ts';
import { version } from './version.ts';
import { BackupFolder } from './wiring/backup-folder.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface BackupResult {
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  /**
   * How many stored files were removed just before the moment of the database. The backup contains them nevertheless.
   */
  readonly removedMeanwhile: number;
  /** The parts of the installation that are stored elsewhere, and how to back them up. */
  readonly notCopied: readonly string[];
}

/** The folders are linked in this order, because files are moved from the earlier folders to the later ones. */
const FILE_FOLDERS = [
  'recordings',
  join('staging', 'downloads'),
  join('staging', 'outbox'),
  join('artifacts', 'objects'),
];
const COPY_CHUNK_BYTES = 1024 * 1024;
const STABLE_READ_ATTEMPTS_MAX = 20;
const PERMISSION_BITS = 0o777;

/** @throws Fault if there is nothing to back up, `target` is in the data folder, or `target` already exists. */
export async function backup(env: Environment, target: string, clock: Clock = systemClock): Promise<BackupResult> {
  const config = readConfig(env);
  const path = await backupPathFor(target, config.dataDir, clock);
  const scope = new Scope();
  try {
    const owner = await readOwner(config.dataDir);
    const base = config.databaseUrl
      ? undefined
      : scope.own(await startBaseBackup({ dataDir: config.dataDir, log: silentLog, clock }));
    const writer = await BackupWriter.create(path);
    try {
      const removedMeanwhile = await copyAll(config, base, writer, scope);
      const head = { ...manifestHead(config, base, clock), owner };
      return { path, ...(await writer.finish(head)), removedMeanwhile, notCopied: partsNotCopied(config) };
    } catch (error) {
      await writer.abandon();
      throw error;
    }
  } finally {
    await scope.close();
  }
}

/** If the target is a folder, the name of the backup file contains the time. */
async function backupPathFor(target: string, dataDir: string, clock: Clock): Promise<string> {
  const path = resolve(target);
  if (`${path}${sep}`.startsWith(`${dataDir}${sep}`))
    throw new Fault('backup_misplaced', `The backup was not written, because ${path} is in the data folder.`, {
      advice: 'Choose a path outside the data folder, preferably on another disk.',
    });
  const targetStats = await stat(path).catch(() => undefined);
  if (!targetStats?.isDirectory()) {
    if (targetStats)
      throw new Fault('backup_exists', `The backup was not written, because ${path} already exists.`, {
        advice: 'Choose another name.',
      });
    return path;
  }
  return join(
    path,
    `berth-${clock
      .now()
      .toISOString()
      .replace(/[-:]|\.\d+/g, '')}.zip`,
  );
}

const manifestHead = (config: Config, base: BaseBackup | undefined, clock: Clock): Omit<ManifestHead, 'owner'> => ({
  version: version(),
  createdAt: clock.now().toISOString(),
  database: base ? { kind: 'embedded', major: base.major, migration: base.migration } : { kind: 'elsewhere' },
  files: config.s3 ? 's3' : 'disk',
});

function partsNotCopied(config: Config): string[] {
  return [
    ...(config.databaseUrl
      ? [
          'the database at DATABASE_URL: save it with pg_dump before each `berth backup`, and restore it with pg_restore',
        ]
      : []),
    ...(config.s3
      ? [`the bucket ${config.s3.bucket}: turn on versioning for it, or copy it after each \`berth backup\``]
      : []),
    ...(config.secret ? ['BERTH_SECRET: store a copy of it with the settings'] : []),
    ...(config.masterKey ? ['the master key that a setting supplies: store a copy of it with the settings'] : []),
  ];
}

async function copyAll(
  { dataDir }: Config,
  base: BaseBackup | undefined,
  writer: BackupWriter,
  scope: Scope,
): Promise<number> {
  if (base) await copyCluster(base, writer);
  // From now on, other processes link the files that they remove.
  const backupFolder = scope.own(await BackupFolder.create(dataDir));
  // These files are read before the backup of the database ends, so that the copied audit heads may be older than the
  // database, but never newer. The master key must not change before that backup ends, because the rows are sealed with
  // it.
  const identityFiles = await readIdentity(dataDir);
  const clusterEnd = await base?.finish();
  const removedMeanwhile = await countFiles(backupFolder.path, FILE_FOLDERS);
  for (const folder of FILE_FOLDERS) await linkFolder(dataDir, backupFolder, folder);
  await backupFolder.endLinking();
  if ((await readIdentity(dataDir)).get('master-key') !== identityFiles.get('master-key')) throw masterKeyReplaced();
  if (base && clusterEnd) await copyEndOfCluster(base.cluster, clusterEnd, writer);
  for (const folder of FILE_FOLDERS) await copyTree(writer, backupFolder.path, dataDir, folder);
  for (const [name, text] of identityFiles) {
    const fileMeta = await readMeta(join(dataDir, name));
    const bytes = Buffer.from(text);
    if (fileMeta)
      await writer.add({ path: name, ...fileMeta.meta, expectedBytes: bytes.length, compress: false, bytes: [bytes] });
  }
  return removedMeanwhile;
}

const masterKeyReplaced = (): Fault =>
  new Fault(
    'backup_interrupted',
    'The backup was not completed, because the master key was replaced while the backup was running.',
    {
      advice: 'Take the backup again.',
    },
  );

/**
 * Reads the secrets and the identity of the installation. `install-id` is not copied, because it identifies the
 * processes of the installation on this machine.
 */
async function readIdentity(dataDir: string): Promise<ReadonlyMap<string, string>> {
  const textByName = new Map<string, string>();
  for (const name of ['host-id', 'secret', 'master-key', 'audit-heads']) {
    const text = await readFile(join(dataDir, name), 'utf8').catch(ignoreAbsent);
    if (text !== undefined) textByName.set(name, text);
  }
  return textByName;
}

// ---- the database --------------------------------------------------------------------------------------------------

async function copyCluster(base: BaseBackup, writer: BackupWriter): Promise<void> {
  await addFolder(writer, dirname(base.cluster), 'pg');
  for await (const { path, isFolder } of walk(base.cluster, '')) {
    if (!base.isCopied(path)) continue;
    const name = join('pg', path);
    if (isFolder) await addFolder(writer, dirname(base.cluster), name);
    else if (path === CONTROL_FILE) await addControlFile(writer, base.cluster);
    else await addFile(writer, join(base.cluster, path), name, true);
  }
}

const CONTROL_FILE = join('global', 'pg_control');

/**
 * Adds the control file, the only file that a restore uses exactly as it was copied. Because PostgreSQL may write it at
 * any moment, it is read until two reads agree.
 */
async function addControlFile(writer: BackupWriter, cluster: string): Promise<void> {
  const file = join(cluster, CONTROL_FILE);
  for (let reads = 0, previousBytes = await readFile(file); reads < STABLE_READ_ATTEMPTS_MAX; reads += 1) {
    const bytes = await readFile(file);
    const fileMeta = await readMeta(file);
    if (fileMeta && bytes.equals(previousBytes))
      return writer.add({
        path: join('pg', CONTROL_FILE),
        ...fileMeta.meta,
        expectedBytes: bytes.length,
        compress: true,
        bytes: [bytes],
      });
    previousBytes = bytes;
  }
  throw new Fault(
    'backup_interrupted',
    `The backup was not completed, because ${file} changed each time it was read.`,
    {
      advice: 'Take the backup again.',
    },
  );
}

async function copyEndOfCluster(
  cluster: string,
  { label, walSegments }: ClusterBackupResult,
  writer: BackupWriter,
): Promise<void> {
  for (const name of walSegments)
    await addFile(writer, join(cluster, 'pg_wal', name), join('pg', 'pg_wal', name), true);
  const fileMeta = await readMeta(join(cluster, 'PG_VERSION'));
  if (!fileMeta) throw new Error(`${cluster} no longer exists`);
  const bytes = Buffer.from(label);
  await writer.add({
    path: 'pg/backup_label',
    ...fileMeta.meta,
    expectedBytes: bytes.length,
    compress: false,
    bytes: [bytes],
  });
}

// ---- files ---------------------------------------------------------------------------------------------------------

/** Links the files that are in the folder now. */
async function linkFolder(dataDir: string, backupFolder: BackupFolder, folder: string): Promise<void> {
  await backupFolder.make(folder);
  for await (const { path, isFolder } of walk(dataDir, folder))
    if (isFolder) await backupFolder.make(path);
    else await tryLink(join(dataDir, path), join(backupFolder.path, path));
}

async function countFiles(root: string, folders: readonly string[]): Promise<number> {
  let count = 0;
  for (const folder of folders) for await (const { isFolder } of walk(root, folder)) if (!isFolder) count += 1;
  return count;
}

/** Adds the files below `root`. The modes and owners of the folders are taken from the data folder. */
async function copyTree(writer: BackupWriter, root: string, dataDir: string, folder: string): Promise<void> {
  if (!(await readMeta(join(root, folder)))) return;
  if (dirname(folder) !== '.') await addFolder(writer, dataDir, dirname(folder));
  await addFolder(writer, dataDir, folder);
  for await (const { path, isFolder } of walk(root, folder)) {
    if (isFolder) await addFolder(writer, dataDir, path);
    else await addFile(writer, join(root, path), path, false);
  }
}

/**
 * Adds a folder. If the folder became empty and has been removed in the meantime, it gets the mode and owner of the
 * nearest folder above it that still exists.
 */
async function addFolder(writer: BackupWriter, dataDir: string, path: string): Promise<void> {
  for (let at = join(dataDir, path); ; at = dirname(at)) {
    const folderMeta = await readMeta(at);
    if (folderMeta) return writer.addFolder({ path, ...folderMeta.meta });
  }
}

/** Adds a file with as many bytes as it has when it is opened. A file that no longer exists is left out. */
async function addFile(writer: BackupWriter, from: string, path: string, compress: boolean): Promise<void> {
  const file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW).catch(ignoreAbsent);
  if (!file) return;
  try {
    const fileStats = await file.stat();
    const streamOptions = { start: 0, end: fileStats.size - 1, autoClose: false, highWaterMark: COPY_CHUNK_BYTES };
    const bytes = fileStats.size === 0 ? [] : file.createReadStream(streamOptions);
    await writer.add({
      path,
      ...metaIn(fileStats),
      expectedBytes: fileStats.size,
      compress,
      bytes: Readable.from(bytes),
    });
  } finally {
    await file.close();
  }
}

interface TreeEntry {
  /** Relative to the `root` argument of `walk`. */
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Yields the regular files and folders below a folder, each folder before its contents. Links and pipes are left out.
 */
async function* walk(root: string, folder: string): AsyncGenerator<TreeEntry> {
  const entries = (await readdir(join(root, folder), { withFileTypes: true }).catch(ignoreAbsent)) ?? [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isFile()) yield { path, isFolder: false };
    if (!entry.isDirectory()) continue;
    yield { path, isFolder: true };
    yield* walk(root, path);
  }
}

type Meta = ManifestHead['owner'];

const metaIn = ({ mode, uid, gid }: Stats): Meta => ({ mode: mode & PERMISSION_BITS, uid, gid });

async function readMeta(path: string): Promise<{ readonly meta: Meta } | undefined> {
  const pathStats = await lstat(path).catch(ignoreAbsent);
  return pathStats && { meta: metaIn(pathStats) };
}

async function readOwner(dataDir: string): Promise<Meta> {
  const folderMeta = await readMeta(dataDir);
  if (folderMeta) return folderMeta.meta;
  throw new Fault('data_folder_unusable', `There is no installation in ${dataDir}.`, {
    advice: 'Set BERTH_DATA_DIR to the data folder of the installation.',
  });
}

function ignoreAbsent(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
}
