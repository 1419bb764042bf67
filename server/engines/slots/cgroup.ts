// One box's cgroup: a folder of the same name in each hierarchy. Lists and kills what is in it, counts its processor time
// and its out-of-memory kills, sets how it is scheduled beside others, and is removed when it is empty.
import { existsSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../kit/wait.ts';
import { findProcess, type Process } from './process-table.ts';

/** A group whose last process has just been reaped is busy for a moment longer. */
const REMOVE_WITHIN_MS = 5000;
const LOOK_EVERY_MS = 3;
/** v1 counts shares in 1024ths, v2 weights in hundredths; a folder has the file of its version, or none. */
const SHARE_FILES = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100],
] as const;
const SHARE_MIN = 2;
/** Of an ordinary group; for kernels before 5.15, which cannot schedule a group as idle. */
const SHARE_AS_IDLE = 0.02;

export class Cgroup {
  readonly folders: readonly string[];
  #share = 1;
  #isIdle = false;

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
    this.#share = share;
    if (!this.#isIdle) this.#writeShare(share);
  }

  /** Scheduled as idle, it runs when no other group of the server's boxes wants the processor, and is interrupted at once when one does. */
  scheduleAsIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    const known = this.#writeEach('cpu.idle', isIdle ? '1' : '0');
    if (!isIdle) this.#writeShare(this.#share);
    else if (!known) this.#writeShare(SHARE_AS_IDLE);
  }

  /** Processor time that its processes have used; undefined where the kernel does not count it for a group. */
  usedMs(): number | undefined {
    for (const folder of this.folders) {
      const microseconds = /^usage_usec (\d+)$/m.exec(read(join(folder, 'cpu.stat')))?.[1];
      if (microseconds !== undefined) return Number(microseconds) / 1e3;
      const nanoseconds = read(join(folder, 'cpuacct.usage')).trim();
      if (nanoseconds !== '') return Number(nanoseconds) / 1e6;
    }
    return undefined;
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

  #writeShare(share: number): void {
    for (const [file, ordinary] of SHARE_FILES)
      this.#writeEach(file, String(Math.max(SHARE_MIN, Math.round(share * ordinary))));
  }

  /** Whether a folder has the file. */
  #writeEach(file: string, text: string): boolean {
    const files = this.folders.map(folder => join(folder, file)).filter(existsSync);
    for (const path of files) writeFileSync(path, text);
    return files.length > 0;
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
