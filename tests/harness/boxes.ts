// Finds the boxes of an installation and, for each box, the processes that run outside its jail, as listed by the
// kernel. For tests that kill these processes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupsOf, installIdOf } from './leftovers.ts';

export interface FoundBox {
  /** The id with which the box was started: the id of its session or of a warm browser. */
  readonly id: string;
  readonly pids: readonly number[];
}

export function boxesOf(dataDir: string): readonly FoundBox[] {
  const marker = `BERTH_BOX=${installIdOf(dataDir)}/`;
  const pidsOfBox = new Map<string, number[]>();
  for (const name of readdirSync('/proc').filter(entry => /^\d+$/.test(entry))) {
    const entry = environmentOf(name).find(one => one.startsWith(marker));
    if (entry)
      pidsOfBox.set(entry.slice(marker.length), [...(pidsOfBox.get(entry.slice(marker.length)) ?? []), Number(name)]);
  }
  return [...pidsOfBox].map(([id, pids]) => ({ id, pids }));
}

/** Whether the box has processes, and the helper that opens its egress listener has exited. */
export const isBoxReady = ({ pids }: FoundBox): boolean =>
  pids.length > 0 && !pids.some(pid => commandLineOf(pid).includes('/listener.pl'));

/** Returns the CPU weight of a box relative to a normal one. Undefined if the box has no cgroup with a weight. */
export function processorShareOf(dataDir: string, id: string): number | undefined {
  const cgroups = cgroupsOf(dataDir).filter(folder => folder.endsWith(`/${id}`));
  const read = (file: string, normalWeight: number) =>
    cgroups.map(folder => join(folder, file)).flatMap(path => shareIn(path, normalWeight));
  return [...read('cpu.shares', 1024), ...read('cpu.weight', 100)][0];
}

/**
 * Returns a list with the share. The list is empty if the file does not exist, because the machine uses another cgroup
 * version or the box is gone.
 */
function shareIn(path: string, normalWeight: number): number[] {
  try {
    return [Number(readFileSync(path)) / normalWeight];
  } catch {
    return [];
  }
}

const environmentOf = (pid: string): string[] => readProc(pid, 'environ').split('\0');
const commandLineOf = (pid: number): string => readProc(pid, 'cmdline');

function readProc(pid: string | number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
