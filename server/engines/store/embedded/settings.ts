// The settings of the embedded PostgreSQL. They are passed on the command line, so that they match this version of the
// server and override the files of the cluster.
import type { Binaries } from './find-binaries.ts';
import { SOCKET_PORT } from './socket-folder.ts';

/** Enough for the pool, the listener, migrations, and some commands that run at the same time. */
const CONNECTIONS_MAX = 200;

export function serverArguments(cluster: string, socketFolder: string, binaries: Binaries): string[] {
  const settings = {
    ...SETTINGS,
    ...(binaries.major >= 18 ? SETTINGS_SINCE_18 : {}),
    unix_socket_directories: socketFolder,
  };
  return ['-D', cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** The name of a setting that distinguishes the embedded PostgreSQL from one that an operator runs. */
export const EMBEDDED_MARK = 'berth.embedded';

const SETTINGS = {
  [EMBEDDED_MARK]: 'on',
  // No TCP: the socket is the only access.
  listen_addresses: '',
  port: SOCKET_PORT,
  unix_socket_permissions: '0700',
  // Apart from the number of connections, these values are small, because browsers need the memory of the machine.
  max_connections: CONNECTIONS_MAX,
  shared_buffers: '32MB',
  wal_buffers: '1MB',
  maintenance_work_mem: '16MB',
  work_mem: '4MB',
  huge_pages: 'off',
  jit: 'off',
  max_worker_processes: 2,
  max_parallel_workers: 0,
  max_parallel_workers_per_gather: 0,
  max_parallel_maintenance_workers: 0,
  max_logical_replication_workers: 0,
  max_wal_senders: 0,
  autovacuum_max_workers: 2,
  // These settings keep the write-ahead log small on disk, and recovery short.
  min_wal_size: '32MB',
  max_wal_size: '256MB',
  // Commits are durable, whatever postgresql.conf contains.
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // Keeps row values out of the log: `terse` omits DETAIL, which contains them.
  logging_collector: 'off',
  log_checkpoints: 'off',
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
  log_line_prefix: '%m [%p] ',
  log_timezone: 'UTC',
  timezone: 'UTC',
};

/** Asynchronous reads would cost three more processes, for a database that fits into its buffers. */
const SETTINGS_SINCE_18 = { io_method: 'sync' };
