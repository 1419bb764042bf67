// Splits long work into turns of the event loop. Between steps, loops over untrusted bytes or rows check `isDue`, and
// await `rest()` if it is true, so that other work can run.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from './clock.ts';

/** The length of the time slice, after which the work must let other work run. */
const SLICE_MS = 4;

export class Pace {
  #sinceMs = systemClock.monotonicMs();

  /**
   * Whether the time slice is used up. If it is, `await rest()`. Checking this costs less than a promise for each step.
   */
  get isDue(): boolean {
    return systemClock.monotonicMs() - this.#sinceMs > SLICE_MS;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.#sinceMs = systemClock.monotonicMs();
  }
}
