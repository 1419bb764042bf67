// The cgroup of one box: a folder of the same name in each hierarchy. Lists and kills the processes of the box, reads
// their processor time, memory peak and out-of-memory kills, and sets their share of processor time.
import { existsSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pollUntil } from '../../kit/wait.ts';
import { KernelFile } from './kernel-file.ts';
import { findProcess, type Process } from './process-table.ts';

/** The time limit for removing a cgroup. A cgroup stays busy (EBUSY) for a moment after its last process was reaped. */
const REMOVE_TIMEOUT_MS = 5000;
const CHECK_INTERVAL_MS = 3;
/**
 * Names of the files that contain the share of processor time, on v1 and on v2, each with the value of an ordinary
 * group. A folder has the file of its version, or neither.
 */
const SHARE_FILES = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100],
] as const;
const SHARE_MIN = 2;
/**
 * The share of an idle group, as a fraction of an ordinary group. Used on kernels before 5.15, which cannot schedule a
 * group as idle.
 */
const IDLE_SHARE = 0.02;

/** The files that contain the memory peak: on v1, and on v2 since Linux 5.19. */
const PEAK_FILES = ['memory.max_usage_in_bytes', 'memory.peak'] as const;

const OOM_KILL_FILES = ['memory.events', 'memory.oom_control'] as const;

/**
 * The files that contain the processor time: on v2, and on v1. Each has a function that parses the content and returns
 * milliseconds.
 */
const PROCESSOR_TIME_FILES = [
  ['cpu.stat', (text: string) => Number(/^usage_usec (\d+)$/m.exec(text)?.[1]) / 1e3],
  ['cpuacct.usage', (text: string) => (text === '' ? Number.NaN : Number(text) / 1e6)],
] as const;

/**
 * A counter file that exists on this machine. The object is cached, because finding the file costs much more than
 * reading it.
 */
interface CounterFile {
  readonly file: KernelFile;
  /** Returns NaN if the text does not contain the number. */
  readonly parse: (text: string) => number;
}

export class Cgroup {
  readonly folders: readonly string[];
  #share = 1;
  #isIdle = false;
  #processorTimeFile: CounterFile | undefined;
  #oomKillFiles: readonly KernelFile[] = [];

  constructor(folders: readonly string[]) {
    this.folders = folders;
  }

  /** The files through which a process joins the group, by writing 0 to each of them. */
  get joinFiles(): readonly string[] {
    return this.folders.map(folder => join(folder, 'cgroup.procs'));
  }

  processes(): readonly Process[] {
    const pids = new Set(this.joinFiles.flatMap(file => read(file).split('\n').filter(Boolean).map(Number)));
    return [...pids].map(findProcess).filter(running => running !== undefined);
  }

  /** Sets the group's share of processor time under contention. The share of an ordinary group is 1. */
  setShare(share: number): void {
    this.#share = share;
    if (!this.#isIdle) this.#writeShare(share);
  }

  /**
   * Schedules the group as idle, or normally again. An idle group runs only when no other group of the server's boxes
   * needs the processor, and is preempted as soon as one does.
   */
  scheduleAsIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    const isSupported = this.#writeEach('cpu.idle', isIdle ? '1' : '0');
    if (!isIdle) this.#writeShare(this.#share);
    else if (!isSupported) this.#writeShare(IDLE_SHARE);
  }

  /** Processor time used by the group's processes; undefined if the kernel does not count it for this group. */
  usedMs(): number | undefined {
    this.#processorTimeFile ??= this.#findProcessorTimeFile();
    const ms = this.#processorTimeFile?.parse(this.#processorTimeFile.file.read());
    return Number.isNaN(ms) ? undefined : ms;
  }

  /**
   * The peak memory use of all the group's processes together, including files in the page cache. Undefined if the
   * kernel does not count it.
   */
  peakMemoryBytes(): number | undefined {
    const peaks = this.#existingPaths(PEAK_FILES).map(path => read(path).trim());
    const peak = peaks.find(text => text !== '');
    return peak === undefined ? undefined : Number(peak);
  }

  /**
   * Kills all processes at once, even those being forked, where the kernel has `cgroup.kill` (v2, since Linux 5.14).
   * Otherwise does nothing: the caller kills `processes()` until none is left.
   */
  killAtOnce(): void {
    for (const folder of this.folders) {
      const file = join(folder, 'cgroup.kill');
      if (existsSync(file)) writeFileSync(file, '1');
    }
  }

  /** The number of processes that the kernel has killed because of the memory limit. */
  outOfMemoryKills(): number {
    if (this.#oomKillFiles.length === 0)
      this.#oomKillFiles = this.#existingPaths(OOM_KILL_FILES).map(path => new KernelFile(path));
    return Math.max(0, ...this.#oomKillFiles.map(file => Number(/^oom_kill (\d+)$/m.exec(file.read())?.[1] ?? 0)));
  }

  #findProcessorTimeFile(): CounterFile | undefined {
    for (const folder of this.folders)
      for (const [name, parse] of PROCESSOR_TIME_FILES)
        if (!Number.isNaN(parse(read(join(folder, name))))) return { file: new KernelFile(join(folder, name)), parse };
    return undefined;
  }

  /** Returns the paths of the files with these names that exist, in all folders of the group. */
  #existingPaths(names: readonly string[]): string[] {
    return names.flatMap(name => this.folders.map(folder => join(folder, name))).filter(path => existsSync(path));
  }

  #writeShare(share: number): void {
    for (const [file, ordinaryShare] of SHARE_FILES)
      this.#writeEach(file, String(Math.max(SHARE_MIN, Math.round(share * ordinaryShare))));
  }

  /** Writes the text to this file in each folder that has it. Returns whether any folder has the file. */
  #writeEach(file: string, text: string): boolean {
    const paths = this.#existingPaths([file]);
    for (const path of paths) writeFileSync(path, text);
    return paths.length > 0;
  }

  /** Closes the counter files. A closed file reads as empty, so its counter reports nothing from then on. */
  close(): void {
    for (const file of [this.#processorTimeFile?.file, ...this.#oomKillFiles]) file?.close();
  }

  async remove(): Promise<void> {
    this.close();
    const isRemoved = (): true | undefined => (this.folders.map(removeFolder).every(Boolean) ? true : undefined);
    await pollUntil(REMOVE_TIMEOUT_MS, 'a cgroup to become empty', isRemoved, CHECK_INTERVAL_MS);
  }
}

function removeFolder(folder: string): boolean {
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
