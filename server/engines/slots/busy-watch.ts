// Measures the processor use of a box. While another session is calm (it uses its browser without keeping a processor
// busy), a busy box is scheduled as idle: it gets only the processor time that no other box needs. A calm session,
// which needs a millisecond now and then, therefore does not wait for busy boxes.
import { msToSharedTick } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { BoxLoad, BoxLoads } from './box-loads.ts';
import type { Cgroup } from './cgroup.ts';

/** Longer than the processor time that a click takes, and shorter than a delay that a person notices. */
export const CHECK_INTERVAL_MS = 200;

export interface BusyWatchOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly cgroup: Cgroup;
  /** The loads of all boxes of this process. */
  readonly loads: BoxLoads;
  /** Whether a session has claimed the box already. */
  readonly isClaimed: boolean;
}

export class BusyWatch {
  readonly #options: BusyWatchOptions;
  readonly #stopController = new AbortController();
  readonly #runLoop: Promise<void>;
  readonly #load: BoxLoad;
  /** Undefined until the first check, because the box may have been scheduled as idle before this watch was created. */
  #isIdle: boolean | undefined;

  constructor(options: BusyWatchOptions) {
    this.#options = options;
    this.#load = options.loads.open(options.isClaimed);
    this.#runLoop = this.#run().catch(error => options.log.warn('box.schedule_failed', { reason: reason(error) }));
  }

  /** Call when a session claims the box. */
  claim(): void {
    this.#load.claim();
  }

  async close(): Promise<void> {
    this.#stopController.abort();
    await this.#runLoop;
  }

  async #run(): Promise<void> {
    try {
      await this.#checkRegularly();
    } finally {
      // After the last check, the box must neither count as calm nor stay scheduled as idle.
      this.#load.close();
      if (!this.#stopController.signal.aborted) this.#options.cgroup.scheduleAsIdle(false);
    }
  }

  /** Ends when the watch is closed, or if the kernel does not count the processor time of the box. */
  async #checkRegularly(): Promise<void> {
    const { cgroup, clock } = this.#options;
    let usedMs = cgroup.usedMs();
    let atMs = clock.monotonicMs();
    while (usedMs !== undefined) {
      await clock.sleep(msToSharedTick(clock, CHECK_INTERVAL_MS), this.#stopController.signal).catch(() => {});
      if (this.#stopController.signal.aborted) return;
      const usedNowMs = cgroup.usedMs();
      const nowMs = clock.monotonicMs();
      if (usedNowMs !== undefined && nowMs > atMs) this.#schedule((usedNowMs - usedMs) / (nowMs - atMs));
      usedMs = usedNowMs;
      atMs = nowMs;
    }
  }

  #schedule(usedProcessors: number): void {
    this.#load.add(usedProcessors);
    const isIdle = this.#load.isBusy && this.#options.loads.hasCalm;
    if (isIdle !== this.#isIdle) this.#options.cgroup.scheduleAsIdle(isIdle);
    this.#isIdle = isIdle;
  }
}
