// Cuts long work into turns of the event loop: whoever loops over bytes or rows that somebody else chose asks `rest()`
// between the steps, and others get their turn when the slice is used up.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from './clock.ts';

/** Work that goes on for this long lets the others have a turn. */
const SLICE_MS = 4;

export class Pace {
  #sinceMs = systemClock.monotonicMs();

  /** Whether the slice is used up: then `await rest()`. Asking costs less than a promise for each step. */
  get isDue(): boolean {
    return systemClock.monotonicMs() - this.#sinceMs > SLICE_MS;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.#sinceMs = systemClock.monotonicMs();
  }
}
