// Ends the remaining processes of a PostgreSQL server whose postmaster is dead. They usually exit on their own, but a
// process that waits for a lock held by a killed process waits forever, and PostgreSQL does not start on the cluster
// while one of these processes exists.
import { readdirSync } from 'node:fs';
import { isClusterProcess } from './postmaster-file.ts';

/**
 * Ends the processes of the cluster. Call only in the process that may start a postmaster there, and only when no
 * postmaster is running. Nothing committed is lost: the next postmaster recovers from the write-ahead log.
 */
export function endOrphans(cluster: string): number[] {
  const orphanPids = readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && isClusterProcess(cluster, pid));
  for (const pid of orphanPids) kill(pid);
  return orphanPids;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // ESRCH: the process has already ended.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
