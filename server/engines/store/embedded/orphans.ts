// Ends processes of a PostgreSQL whose postmaster is dead. They usually exit by themselves, but one that waits for a lock of a
// killed process waits forever, and while one is left no PostgreSQL starts on the cluster.
import { readdirSync } from 'node:fs';
import { livesIn } from './postmaster-file.ts';

/**
 * Ends those that live in the cluster; to be called only by who may start a postmaster there, and when none lives. What they
 * held in memory was lost with the postmaster; what they had committed is in the log, from which the next one recovers.
 */
export function endOrphans(cluster: string): number[] {
  const orphans = readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && livesIn(cluster, pid));
  for (const pid of orphans) kill(pid);
  return orphans;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error; // it has left
  }
}
