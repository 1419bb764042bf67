// Reads the descendants, memory and CPU time of processes on this machine from /proc.
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { boxesOf } from '../tests/harness/boxes.ts';
import type { TestServer } from '../tests/harness/server.ts';

export interface Memory {
  readonly pssMib: number;
  readonly privateMib: number;
  readonly processes: number;
}

const KIB_PER_MIB = 1024;

export function processTreesOf(roots: readonly number[]): readonly number[] {
  const parents = allPids().map(pid => ({ pid, parent: parentOf(pid) }));
  const processIds = new Set(roots);
  for (let sizeBefore = 0; sizeBefore < processIds.size; ) {
    sizeBefore = processIds.size;
    for (const { pid, parent } of parents) if (parent !== undefined && processIds.has(parent)) processIds.add(pid);
  }
  return [...processIds];
}

/** Processes whose command line names the path. */
export const pidsWithPath = (path: string): readonly number[] =>
  allPids().filter(pid => pid !== process.pid && (readProcFile(pid, 'cmdline') ?? '').includes(path));

export const boxPids = ({ dataDir }: TestServer): readonly number[] =>
  processTreesOf(boxesOf(dataDir).flatMap(({ pids }) => pids));

/** Returns the ids of the processes of the server, its database and its encoders, without those of the browsers. */
export function pidsOutsideBoxes(server: TestServer): readonly number[] {
  const boxPidSet = new Set(boxPids(server));
  return processTreesOf([server.pid]).filter(pid => !boxPidSet.has(pid));
}

/** The total proportional and private memory of the processes. Processes that have ended are not counted. */
export function memoryOf(pids: readonly number[]): Memory {
  const rollups = pids.flatMap(pid => readProcFile(pid, 'smaps_rollup') ?? []);
  const sum = (field: string): number =>
    rollups.reduce((total, text) => total + Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0);
  return {
    pssMib: sum('Pss') / KIB_PER_MIB,
    privateMib: (sum('Private_Clean') + sum('Private_Dirty')) / KIB_PER_MIB,
    processes: rollups.length,
  };
}

const TICKS_PER_SECOND = 100;

/** The user and system CPU time that the processes have used. Processes that have ended are not counted. */
export const cpuSecondsOf = (pids: readonly number[]): number => secondsOf(pids, [11, 12]);

/** Like `cpuSecondsOf`, but also counts child processes that have ended and been waited for. */
export const cpuSecondsWithChildren = (pids: readonly number[]): number => secondsOf(pids, [11, 12, 13, 14]);

function secondsOf(pids: readonly number[], columns: readonly number[]): number {
  const ticks = pids.map(pid => {
    const stat = readProcFile(pid, 'stat') ?? '';
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return columns.reduce((sum, column) => sum + Number(fields[column] ?? 0), 0);
  });
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND;
}

/**
 * The CPU time of these processes and of all processes that they start from now on, including ended ones. bubblewrap
 * does not wait for its children, so their CPU time is not added to that of their parent. Uses a cgroup; needs root and
 * the cpuacct controller.
 */
export function createCpuMeter(pids: readonly number[]): {
  readonly seconds: () => number;
  readonly close: () => void;
} {
  const folder = `/sys/fs/cgroup/cpuacct/berth-bench-${process.pid}`;
  mkdirSync(folder);
  for (const pid of pids) writeFileSync(`${folder}/cgroup.procs`, String(pid));
  return {
    seconds: () => Number(readFileSync(`${folder}/cpuacct.usage`, 'utf8')) / 1e9,
    close: () => rmdirSync(folder),
  };
}

const allPids = (): readonly number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number);

function parentOf(pid: number): number | undefined {
  const stat = readProcFile(pid, 'stat');
  return stat === undefined ? undefined : Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function readProcFile(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined; // the process has ended
  }
}
