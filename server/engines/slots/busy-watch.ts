// Looks how busy a box keeps the processor. One that keeps it busy is scheduled as idle: it has all that is left, and
// another session, which wants a millisecond now and then, does not wait for its turn to end.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Cgroup } from './cgroup.ts';

/** Longer than the processor time of one click, shorter than what a person notices as a stop. */
const LOOK_EVERY_MS = 200;
/** In processors, over the time since the last look. A page that plays or animates stays below it. */
const BUSY_FROM = 0.6;
/** A box that gets less than this as idle is scheduled as before, so that none is starved. */
const BUSY_UNTIL = 0.3;

export interface BusyWatchOptions {
  readonly cgroup: Cgroup;
  readonly clock: Clock;
  readonly log: Log;
}

export class BusyWatch {
  readonly #options: BusyWatchOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  /** Undefined until the first look: a former server may have left an adopted box scheduled as idle. */
  #isBusy: boolean | undefined;

  constructor(options: BusyWatchOptions) {
    this.#options = options;
    this.#running = this.#run().catch(error => options.log.warn('box.schedule_failed', { reason: reason(error) }));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { cgroup, clock } = this.#options;
    let usedMs = cgroup.usedMs();
    let atMs = clock.monotonicMs();
    while (usedMs !== undefined) {
      await clock.sleep(LOOK_EVERY_MS, this.#stop.signal).catch(() => {});
      if (this.#stop.signal.aborted) return;
      const usedNowMs = cgroup.usedMs();
      const nowMs = clock.monotonicMs();
      if (usedNowMs !== undefined && nowMs > atMs) this.#judge((usedNowMs - usedMs) / (nowMs - atMs));
      usedMs = usedNowMs;
      atMs = nowMs;
    }
  }

  #judge(processors: number): void {
    const isBusy = processors > (this.#isBusy ? BUSY_UNTIL : BUSY_FROM);
    if (isBusy !== this.#isBusy) this.#options.cgroup.scheduleAsIdle(isBusy);
    this.#isBusy = isBusy;
  }
}
