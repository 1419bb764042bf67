// Limits how many browsers start at once. Browsers that are starting share the processors: if all of them started at
// once, each start would take as long as all of them together. If they start one after the other, most browsers are
// ready earlier.
import { availableParallelism } from 'node:os';
import { addMs, type Clock, callAt } from '../../kit/clock.ts';

/**
 * A start releases its place after this time, because it is then probably waiting for something other than a processor.
 * The next start need not wait for it.
 */
const PLACE_TIMEOUT_MS = 3_000;

export class StartGate {
  readonly #clock: Clock;
  readonly #places: number;
  readonly #waitingStarts: Array<() => void> = [];
  #takenPlaces = 0;

  constructor(clock: Clock, places = availableParallelism()) {
    this.#clock = clock;
    this.#places = places;
  }

  /** The number of starts that wait for their turn. */
  get waiting(): number {
    return this.#waitingStarts.length;
  }

  /** Runs a start when a place is free. Starts wait in order of arrival. Rejects if the signal aborts first. */
  async inTurn<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#waitForTurn(signal);
    return this.#run(start);
  }

  /** Runs a start at once. It takes a place even if no place is free, so later starts wait longer. */
  hold<T>(start: () => Promise<T>): Promise<T> {
    this.#takenPlaces++;
    return this.#run(start);
  }

  async #run<T>(start: () => Promise<T>): Promise<T> {
    let isHeld = true;
    const releasePlace = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#takenPlaces--;
      this.#admit();
    };
    const placeTimeout = callAt(this.#clock, addMs(this.#clock.now(), PLACE_TIMEOUT_MS), releasePlace);
    try {
      return await start();
    } finally {
      placeTimeout.close();
      releasePlace();
    }
  }

  async #waitForTurn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#takenPlaces < this.#places) return void this.#takenPlaces++;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abandon = (): void => {
      const index = this.#waitingStarts.indexOf(resolve);
      if (index >= 0) this.#waitingStarts.splice(index, 1);
      reject(signal.reason);
    };
    signal.addEventListener('abort', abandon, { once: true });
    this.#waitingStarts.push(resolve);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', abandon);
    }
  }

  #admit(): void {
    if (this.#takenPlaces >= this.#places) return;
    const next = this.#waitingStarts.shift();
    if (!next) return;
    this.#takenPlaces++;
    next();
  }
}
