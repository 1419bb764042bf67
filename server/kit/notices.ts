// Waits for a notification, for a limited time. A notification that arrives while nobody is waiting is not lost.
import type { Clock } from './clock.ts';

export class Notices {
  readonly #clock: Clock;
  #isNoted = false;
  #sleep: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#isNoted = true;
    this.#sleep?.abort();
  }

  /** Resolves as soon as a notification has arrived since the previous call, but after `ms` at the latest. */
  async next(ms: number): Promise<void> {
    if (!this.#isNoted) {
      this.#sleep = new AbortController();
      await this.#clock.sleep(ms, this.#sleep.signal).catch(() => {}); // resolved by a notification
    }
    this.#isNoted = false;
  }
}
