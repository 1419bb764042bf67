// Reads postmaster.pid, which PostgreSQL keeps in its cluster folder: the process that is running there, its socket,
// and whether it is ready.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface PostmasterFile {
  readonly pid: number;
  readonly socketFolder: string;
  readonly port: number;
  readonly isReady: boolean;
}

const pidFilePath = (cluster: string): string => join(cluster, 'postmaster.pid');

export function readPostmasterFile(cluster: string): PostmasterFile | undefined {
  const [pid, , , port, socketFolder, , , status] = readLines(cluster);
  if (!(Number(pid) > 0)) return undefined;
  return {
    pid: Number(pid),
    port: Number(port),
    socketFolder: socketFolder ?? '',
    isReady: status?.trim() === 'ready',
  };
}

/**
 * Whether the process belongs to the PostgreSQL of this cluster. All processes of the cluster have its folder as their
 * working folder; an unrelated process that got the same pid after a restart of the machine or container does not.
 */
export function isClusterProcess(cluster: string, pid: number): boolean {
  try {
    const workingFolderStats = statSync(`/proc/${pid}/cwd`);
    const clusterStats = statSync(cluster);
    return workingFolderStats.ino === clusterStats.ino && workingFolderStats.dev === clusterStats.dev && !isZombie(pid);
  } catch {
    return false;
  }
}

/**
 * Replaces the pid in a file left by a dead postmaster, because PostgreSQL refuses to start while any process has that
 * pid. The file itself is kept: from its last line PostgreSQL determines whether children of the dead postmaster are
 * still writing.
 */
export function replaceDeadPid(cluster: string): void {
  const [, ...rest] = readLines(cluster);
  writeFileSync(pidFilePath(cluster), [UNUSED_PID, ...rest].join('\n'));
}

/** One more than the highest possible pid on Linux. */
const UNUSED_PID = '4194305';

function readLines(cluster: string): string[] {
  try {
    return readFileSync(pidFilePath(cluster), 'utf8').split('\n');
  } catch {
    return [];
  }
}

function isZombie(pid: number): boolean {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).startsWith('Z');
}
