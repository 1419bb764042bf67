// Checks a running box every two seconds: the size of its folder, and the number of out-of-memory kills. The folder is
// measured less often if the box has hardly run since the last measurement, because a walk takes 2 ms even for the 240
// files of a small profile. A decrease in the free space of the disk shows at almost no cost that some folder has
// grown.
import { statfsSync } from 'node:fs';
import { msToSharedTick } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { CHECK_INTERVAL_MS as BUSY_CHECK_INTERVAL_MS } from './busy-watch.ts';
import type { Cgroup } from './cgroup.ts';
import { type Measurement, measure } from './measure.ts';

/** The interval between checks. A fast writer can exceed the disk limit for this long. */
const CHECK_INTERVAL_MS = 2000;
/**
 * A box that has used less processor time than this since the last measurement counts as idle. Writing 100 MB takes
 * more. An idle Chromium uses a few milliseconds in two seconds.
 */
const IDLE_CPU_MS_MAX = 50;
/**
 * If the free space of the disk has decreased by this many bytes, the folder of an idle box is measured too, because
 * disk space can be taken with almost no processor time (fallocate).
 */
const GROWN_BYTES_MIN = 16 * 1024 * 1024;
/**
 * The files of other boxes also decrease the free space. The folder of an idle box is therefore not measured more often
 * than this.
 */
const MEASURE_INTERVAL_MS_MIN = 10_000;
/**
 * The folder is measured at least this often, because space that becomes free elsewhere on the disk can hide its
 * growth.
 */
const MEASURE_INTERVAL_MS_MAX = 60_000;
/**
 * Even on a busy server, the exit of the browser is detected within this time after its main process was killed. The
 * out-of-memory kill may be counted before the exit is detected.
 */
const EXIT_DETECTION_MS_MAX = 5000;
/**
 * A profile has a few thousand files. Walking many more files, or deeper folders, would itself be a denial of service.
 */
const ENTRIES_MAX = 200_000;
const DEPTH_MAX = 128;

export interface LimitWatchOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly folder: string;
  readonly diskBytes: number;
  readonly cgroup: Cgroup;
  readonly onDiskLimit: (measurement: Measurement) => void;
  /** Returns the free bytes of the disk that contains the folder. Default: `freeBytesOf`. */
  readonly freeBytes?: (folder: string) => number;
}

/** What is compared to decide whether the folder may have grown. */
interface BoxState {
  readonly atMs: number;
  /** The processor time of the box. */
  readonly usedMs: number;
  readonly freeBytes: number;
}

export class LimitWatch {
  readonly #options: LimitWatchOptions;
  readonly #stopController = new AbortController();
  readonly #runLoop: Promise<void>;
  #memoryKillCount: number;
  #lastMemoryKillMs = Number.NEGATIVE_INFINITY;
  /** The state at the last measurement of the folder. */
  #lastMeasuredState: BoxState | undefined;

  constructor(options: LimitWatchOptions) {
    this.#options = options;
    this.#memoryKillCount = options.cgroup.outOfMemoryKills();
    this.#runLoop = this.#run();
  }

  /**
   * Whether an out-of-memory kill has just occurred. An earlier kill does not count: the box survived it, so only a
   * renderer was killed.
   */
  hasRecentMemoryKill(): boolean {
    this.#countMemoryKills();
    return this.#options.clock.monotonicMs() - this.#lastMemoryKillMs < EXIT_DETECTION_MS_MAX;
  }

  async close(): Promise<void> {
    this.#stopController.abort();
    await this.#runLoop;
  }

  async #run(): Promise<void> {
    while (!this.#stopController.signal.aborted) {
      await this.#check().catch(error => this.#options.log.warn('box.measure_failed', { reason: reason(error) }));
      // Waits until BusyWatch checks the processor time, so that both checks wake this process only once.
      const { clock } = this.#options;
      const waitMs = CHECK_INTERVAL_MS - BUSY_CHECK_INTERVAL_MS + msToSharedTick(clock, BUSY_CHECK_INTERVAL_MS);
      await clock.sleep(waitMs, this.#stopController.signal).catch(() => {});
    }
  }

  #countMemoryKills(): void {
    const kills = this.#options.cgroup.outOfMemoryKills();
    if (kills > this.#memoryKillCount) this.#lastMemoryKillMs = this.#options.clock.monotonicMs();
    this.#memoryKillCount = kills;
  }

  async #check(): Promise<void> {
    this.#countMemoryKills();
    if (!this.#mayHaveGrown()) return;
    const bounds = { bytes: this.#options.diskBytes, entries: ENTRIES_MAX, depth: DEPTH_MAX };
    const measurement = await measure(this.#options.folder, bounds, this.#stopController.signal);
    if (measurement.stoppedBy && !this.#stopController.signal.aborted) this.#options.onDiskLimit(measurement);
  }

  /**
   * Whether the folder may have grown since it was last measured. Always true if the kernel does not count the
   * processor time of the box.
   */
  #mayHaveGrown(): boolean {
    const { clock, cgroup, folder, freeBytes = freeBytesOf } = this.#options;
    const earlierState = this.#lastMeasuredState;
    const laterState = {
      atMs: clock.monotonicMs(),
      usedMs: cgroup.usedMs() ?? Number.POSITIVE_INFINITY,
      freeBytes: freeBytes(folder),
    };
    if (earlierState && !mayHaveGrownBetween(earlierState, laterState)) return false;
    this.#lastMeasuredState = laterState;
    return true;
  }
}

function mayHaveGrownBetween(before: BoxState, now: BoxState): boolean {
  const isIdle = now.usedMs - before.usedMs < IDLE_CPU_MS_MAX; // False (NaN) if processor time is not counted.
  if (!isIdle) return true;
  const elapsedMs = now.atMs - before.atMs;
  if (elapsedMs >= MEASURE_INTERVAL_MS_MAX) return true;
  const isDiskFuller =
    now.freeBytes === Number.NEGATIVE_INFINITY || before.freeBytes - now.freeBytes >= GROWN_BYTES_MIN;
  return isDiskFuller && elapsedMs >= MEASURE_INTERVAL_MS_MIN;
}

/**
 * Returns the free bytes of the disk that contains the folder. Returns -Infinity if they cannot be read, so that the
 * folder is measured.
 */
export function freeBytesOf(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return Number.NEGATIVE_INFINITY;
  }
}
