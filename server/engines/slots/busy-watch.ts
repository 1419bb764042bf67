// Measures the processor use of a box. A busy box is scheduled as idle: it gets only the processor time that no other
// box needs. A session that needs a millisecond now and then therefore does not wait for the busy box.
import { msToSharedTick } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Cgroup } from './cgroup.ts';

/** Longer than the processor time of one click, and shorter than a delay that a person notices. */
export const CHECK_EVERY_MS = 200;
/**
 * A box that has used more processors than this, on average since the last check, is busy. A page that plays video or
 * animates stays below this number.
 */
const BUSY_FROM = 0.6;
/** A box that is scheduled as idle and uses less than this is scheduled normally again, so that it is not starved. */
const BUSY_UNTIL = 0.3;

export interface BusyWatchOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly cgroup: Cgroup;
}

export class BusyWatch {
  readonly #options: BusyWatchOptions;
  readonly #stopController = new AbortController();
  readonly #runLoop: Promise<void>;
  /** Undefined until the first check, because an adopted box may already be scheduled as idle. */
  #isBusy: boolean | undefined;

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
    const isBusy = usedProcessors > (this.#isBusy ? BUSY_UNTIL : BUSY_FROM);
    if (isBusy !== this.#isBusy) this.#options.cgroup.scheduleAsIdle(isBusy);
    this.#isBusy = isBusy;
  }
}
