// One box's cgroup: a folder of the same name in each hierarchy. Lists and kills what is in it, counts its
// out-of-memory kills, and goes away when it is empty.
import { existsSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../kit/wait.ts';
import { findProcess, type Process } from './process-table.ts';

/** A group whose last process has just been reaped is busy for a moment longer. */
const REMOVE_WITHIN_MS = 5000;
const LOOK_EVERY_MS = 3;

export class Cgroup {
  readonly folders: readonly string[];

  constructor(folders: readonly string[]) {
    this.folders = folders;
  }

  /** A process joins by writing 0 to each of these. */
  get joinFiles(): readonly string[] {
    return this.folders.map(folder => join(folder, 'cgroup.procs'));
  }

  processes(): readonly Process[] {
    const pids = new Set(this.joinFiles.flatMap(file => read(file).split('\n').filter(Boolean).map(Number)));
    return [...pids].map(findProcess).filter(found => found !== undefined);
  }

  /** How much processor time it gets when others want some too; an ordinary group has 1. */
  setShare(share: number): void {
    for (const folder of this.folders) {
      // v1 counts in 1024ths, v2 in hundredths; a folder has the file of its version, or none.
      for (const [file, ordinary] of [
        ['cpu.shares', 1024],
        ['cpu.weight', 100],
      ] as const)
        if (existsSync(join(folder, file)))
          writeFileSync(join(folder, file), String(Math.max(2, Math.round(share * ordinary))));
    }
  }

  /** v2 can end all at once, also those that are just being forked. Elsewhere the caller kills `processes()` until none is left. */
  killAtOnce(): void {
    for (const folder of this.folders) {
      const file = join(folder, 'cgroup.kill');
      if (existsSync(file)) writeFileSync(file, '1');
    }
  }

  /** How many processes of the box the kernel has killed for want of memory. */
  outOfMemoryKills(): number {
    const counts = this.folders
      .flatMap(folder => [join(folder, 'memory.events'), join(folder, 'memory.oom_control')])
      .map(file => Number(/^oom_kill (\d+)$/m.exec(read(file))?.[1] ?? 0));
    return Math.max(0, ...counts);
  }

  async remove(): Promise<void> {
    const isRemoved = (): true | undefined => (this.folders.map(removed).every(Boolean) ? true : undefined);
    await until(REMOVE_WITHIN_MS, 'a cgroup to become empty', isRemoved, LOOK_EVERY_MS);
  }
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
