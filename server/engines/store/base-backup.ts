// A base backup of the embedded PostgreSQL, made with PostgreSQL's own functions: between pg_backup_start and
// pg_backup_stop the files of the cluster may be copied while it is running. Together with the write-ahead log of that
// time, the copies give the state at the moment of pg_backup_stop. pg_basebackup works in the same way, but the npm
// package contains neither pg_basebackup nor pg_dump.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { Fault } from '../../kit/fault.ts';
import { type Closeable, Scope } from '../../kit/scope.ts';
import { connectionConfig } from './database.ts';
import { clusterFolder, clusterMajor } from './embedded/cluster.ts';
import { openTarget, type StoreOptions } from './open-store.ts';

/** Long enough for a checkpoint, which writes all changed buffers from memory to a disk that may be slow. */
const STATEMENT_TIMEOUT_MS = 300_000;
const SEGMENT_NAME_PATTERN = /^[0-9A-F]{24}$/;
/**
 * Folders whose contents belong to the running process or are created again when PostgreSQL starts. The folders
 * themselves must exist.
 */
const EMPTY_FOLDERS = /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/./;
const EXCLUDED_FILES =
  /(^|\/)(postmaster\.(pid|opts)|pg_internal\.init(\.\d+)?|pgsql_tmp[^/]*|backup_label|tablespace_map)$/;

export interface BaseBackup extends Closeable {
  readonly cluster: string;
  readonly major: number;
  /** The newest migration of the database. */
  readonly migration: string;
  /** Whether a path in the cluster belongs in the backup. */
  isCopied(path: string): boolean;
  /** Ends the backup. The segments are kept until `close`. */
  finish(): Promise<BackupResult>;
}

/**
 * For a restore, `label` must become the file `backup_label`, and `pg_wal` must contain these segments of the
 * write-ahead log.
 */
export interface BackupResult {
  readonly label: string;
  readonly walSegments: readonly string[];
}

/**
 * Starts a base backup, even if a server is running.
 *
 * @throws Fault `data_folder_unusable` if there is no cluster yet.
 */
export async function startBaseBackup(
  options: Omit<StoreOptions, 'isBesideServer' | 'databaseUrl'>,
): Promise<BaseBackup> {
  const scope = new Scope();
  try {
    const major = clusterMajor(options.dataDir);
    if (major === undefined) throw missingInstallationFault(options.dataDir);
    const client = new pg.Client({
      ...connectionConfig(await openTarget({ ...options, isBesideServer: true }, scope)),
      query_timeout: STATEMENT_TIMEOUT_MS,
      application_name: 'berth-backup',
    });
    client.on('error', () => {}); // The next query fails with this error.
    await client.connect();
    scope.defer(() => client.end());
    return { ...(await begin(client, options.dataDir)), major, close: () => scope.close() };
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function begin(client: pg.Client, dataDir: string): Promise<Omit<BaseBackup, 'major' | 'close'>> {
  const cluster = clusterFolder(dataDir);
  const migrationResult = await client.query('select name from berth_migrations order by name desc limit 1');
  // The replication slot makes PostgreSQL keep the write-ahead log from now on. The slot is dropped when the connection
  // ends.
  await client.query(`select pg_create_physical_replication_slot('berth_backup_${process.pid}', true, true)`);
  const startResult = await client.query("select pg_walfile_name(pg_backup_start('berth', true)) as segment");
  const firstSegment = String(startResult.rows[0]?.segment);
  return {
    cluster,
    migration: String(migrationResult.rows[0]?.name ?? ''),
    isCopied: path => !EMPTY_FOLDERS.test(path) && !EXCLUDED_FILES.test(path),
    finish: async () => {
      // `false`: PostgreSQL need not wait until the write-ahead log is archived, because it is not archived.
      const stopResult = await client.query(
        'select labelfile, pg_walfile_name(lsn) as segment from pg_backup_stop(false)',
      );
      const { labelfile: label, segment: lastSegment } = stopResult.rows[0] ?? {};
      const names = await readdir(join(cluster, 'pg_wal'));
      const segments = names
        .filter(one => SEGMENT_NAME_PATTERN.test(one) && one >= firstSegment && one <= String(lastSegment))
        .sort();
      if (segments[0] !== firstSegment)
        throw new Error(`the backup is incomplete: segment ${firstSegment} of the write-ahead log is missing`);
      return { label: String(label), walSegments: segments };
    },
  };
}

const missingInstallationFault = (dataDir: string): Fault =>
  new Fault('data_folder_unusable', `There is no installation in ${dataDir}.`, {
    advice: 'Set BERTH_DATA_DIR to the data folder of the installation.',
  });
