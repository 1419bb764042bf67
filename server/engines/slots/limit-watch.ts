// Checks a running box every two seconds: the size of its folder, and the number of out-of-memory kills. The folder is
// measured less often if the box has hardly run since the last measurement, because a walk takes 2 ms even for the 240
// files of a small profile. The free space of the disk tells at almost no cost that some folder has grown.
import { statfsSync } from 'node:fs';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Cgroup } from './cgroup.ts';
import { type Measurement, measure } from './measure.ts';

/** The interval between checks. A fast writer can exceed the disk limit for this long. */
const CHECK_EVERY_MS = 2000;
/**
 * Processor time up to which a box counts as idle. Writing 100 MB takes more. An idle Chromium uses a few milliseconds
 * in two seconds.
 */
const IDLE_CPU_MS_MAX = 50;
/** Disk space can also be taken with next to no processor time (fallocate). The disk then has less free space. */
const GROWN_BYTES_MIN = 16 * 1024 * 1024;
/** Other boxes take disk space too, so the folder of an idle box is not measured more often than this. */
const MEASURE_AT_MOST_EVERY_MS = 10_000;
/** The folder is measured at least this often, because disk space may become free elsewhere meanwhile. */
const MEASURE_AT_LEAST_EVERY_MS = 60_000;
/**
 * Even a busy server notices within this time that the browser's main process was killed. A check may see the
 * out-of-memory kill before that.
 */
const EXIT_SEEN_WITHIN_MS = 5000;
/**
 * A profile has a few thousand files. Walking many more files, or deeper folders, would itself be a denial of service.
 */
const ENTRIES_MAX = 200_000;
const DEPTH_MAX = 128;

export interface LimitWatchOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly folder: string;
  readonly diskBytes: number;
  readonly cgroup: Cgroup;
  readonly onDiskLimit: (reading: Measurement) => void;
  /** The free space of the disk on which the folder is. */
  readonly freeBytes?: (folder: string) => number;
}

/** The state at the last measurement of the folder. */
interface LastMeasurement {
  readonly atMs: number;
  /** The processor time of the box. */
  readonly usedMs: number;
  readonly freeBytes: number;
}

export class LimitWatch {
  readonly #options: LimitWatchOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #memoryKillsSeen: number;
  #memoryKillSeenMs = Number.NEGATIVE_INFINITY;
  #lastMeasurement: LastMeasurement | undefined;

  constructor(options: LimitWatchOptions) {
    this.#options = options;
    this.#memoryKillsSeen = options.cgroup.outOfMemoryKills();
    this.#running = this.#run();
  }

  /**
   * Whether there has just been an out-of-memory kill. An earlier kill does not count: the box survived it, so it hit
   * only a renderer.
   */
  hasRecentMemoryKill(): boolean {
    this.#countMemoryKills();
    return this.#options.clock.monotonicMs() - this.#memoryKillSeenMs < EXIT_SEEN_WITHIN_MS;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#check().catch(error => this.#options.log.warn('box.measure_failed', { reason: reason(error) }));
      await this.#options.clock.sleep(CHECK_EVERY_MS, this.#stop.signal).catch(() => {});
    }
  }

  #countMemoryKills(): void {
    const kills = this.#options.cgroup.outOfMemoryKills();
    if (kills > this.#memoryKillsSeen) this.#memoryKillSeenMs = this.#options.clock.monotonicMs();
    this.#memoryKillsSeen = kills;
  }

  async #check(): Promise<void> {
    this.#countMemoryKills();
    if (!this.#mayHaveGrown()) return;
    const bounds = { bytes: this.#options.diskBytes, entries: ENTRIES_MAX, depth: DEPTH_MAX };
    const folderSize = await measure(this.#options.folder, bounds, this.#stop.signal);
    if (folderSize.stoppedBy && !this.#stop.signal.aborted) this.#options.onDiskLimit(folderSize);
  }

  /**
   * Whether the folder may have grown since it was last measured. Always true if the kernel does not count the
   * processor time of the box.
   */
  #mayHaveGrown(): boolean {
    const { clock, cgroup, folder, freeBytes = freeBytesOf } = this.#options;
    const before = this.#lastMeasurement;
    const now = {
      atMs: clock.monotonicMs(),
      usedMs: cgroup.usedMs() ?? Number.POSITIVE_INFINITY,
      freeBytes: freeBytes(folder),
    };
    if (before && !mayHaveGrownBetween(before, now)) return false;
    this.#lastMeasurement = now;
    return true;
  }
}

function mayHaveGrownBetween(before: LastMeasurement, now: LastMeasurement): boolean {
  const isIdle = now.usedMs - before.usedMs < IDLE_CPU_MS_MAX; // False without the processor time: NaN.
  if (!isIdle) return true;
  const sinceMs = now.atMs - before.atMs;
  if (sinceMs >= MEASURE_AT_LEAST_EVERY_MS) return true;
  const isDiskFuller =
    now.freeBytes === Number.NEGATIVE_INFINITY || before.freeBytes - now.freeBytes >= GROWN_BYTES_MIN;
  return isDiskFuller && sinceMs >= MEASURE_AT_MOST_EVERY_MS;
}

/** If the free space cannot be read, none is assumed, so that the folder is measured. */
export function freeBytesOf(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return Number.NEGATIVE_INFINITY;
  }
}
