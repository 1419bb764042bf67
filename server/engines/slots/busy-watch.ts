// Measures the processor use of a box. A busy box is scheduled as idle: it gets only the processor time that no other
// box needs. A session that needs a millisecond now and then therefore does not wait for the busy box.
import { msToSharedTick } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Cgroup } from './cgroup.ts';

/** Longer than the processor time of one click, and shorter than a delay that a person notices. */
export const CHECK_EVERY_MS = 200;
/** A box that uses more processors than this between two checks is busy. */
const BUSY_FROM = 0.45;
/** A busy box whose average is less than this is scheduled normally again. */
const BUSY_UNTIL = 0.2;
/**
 * The weight of the last check in the average, which therefore covers about three seconds. With a shorter average, a
 * busy box that gets little processor time because of other boxes would soon be scheduled normally again.
 */
const LAST_CHECK_WEIGHT = 0.07;

export interface BusyWatchOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly cgroup: Cgroup;
}

export class BusyWatch {
  readonly #options: BusyWatchOptions;
  readonly #stopController = new AbortController();
  readonly #runLoop: Promise<void>;
  /** Undefined until the first check, because an adopted box may already be scheduled as idle. */
  #isBusy: boolean | undefined;
  /** The average processor use, in processors. At first, a box counts as busy, because it has just been started. */
  #average = BUSY_FROM;

  constructor(options: BusyWatchOptions) {
    this.#options = options;
    this.#runLoop = this.#run().catch(error => options.log.warn('box.schedule_failed', { reason: reason(error) }));
  }

  async close(): Promise<void> {
    this.#stopController.abort();
    await this.#runLoop;
  }

  async #run(): Promise<void> {
    const { cgroup, clock } = this.#options;
    let usedMs = cgroup.usedMs();
    let atMs = clock.monotonicMs();
    while (usedMs !== undefined) {
      await clock.sleep(msToSharedTick(clock, CHECK_EVERY_MS), this.#stopController.signal).catch(() => {});
      if (this.#stopController.signal.aborted) return;
      const usedNowMs = cgroup.usedMs();
      const nowMs = clock.monotonicMs();
      if (usedNowMs !== undefined && nowMs > atMs) this.#schedule((usedNowMs - usedMs) / (nowMs - atMs));
      usedMs = usedNowMs;
      atMs = nowMs;
    }
  }

  #schedule(usedProcessors: number): void {
    this.#average += (usedProcessors - this.#average) * LAST_CHECK_WEIGHT;
    if (usedProcessors > BUSY_FROM) this.#average = Math.max(this.#average, usedProcessors);
    const isBusy = this.#average > (this.#isBusy === false ? BUSY_FROM : BUSY_UNTIL);
    if (isBusy !== this.#isBusy) this.#options.cgroup.scheduleAsIdle(isBusy);
    this.#isBusy = isBusy;
  }
}
