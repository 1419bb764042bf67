// Waits for a notification, for a limited time. A notification that arrives while nobody is waiting is not lost.
import type { Clock } from './clock.ts';

export class Notices {
  readonly #clock: Clock;
  #hasNotice = false;
  #sleepController: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#hasNotice = true;
    this.#sleepController?.abort();
  }

  /** Resolves as soon as a notification has arrived since the previous call, or after `ms` milliseconds. */
  async next(ms: number): Promise<void> {
    if (!this.#hasNotice) {
      this.#sleepController = new AbortController();
      await this.#clock.sleep(ms, this.#sleepController.signal).catch(() => {}); // a notification aborts the sleep
    }
    this.#hasNotice = false;
  }
}
