// A clock that runs like the real one and can be advanced. Wall time, monotonic time and sleeps advance together.
import type { Clock } from '../../server/kit/clock.ts';

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
  timer: NodeJS.Timeout;
}

export class TestClock implements Clock {
  readonly #sleepers = new Set<Sleeper>();
  #aheadMs: number;

  constructor(aheadMs = 0) {
    this.#aheadMs = aheadMs;
  }

  now(): Date {
    return new Date(Date.now() + this.#aheadMs);
  }

  monotonicMs(): number {
    return performance.now() + this.#aheadMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = (settle: () => void): void => {
        clearTimeout(sleeper.timer);
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const wake = (): void => end(resolve);
      const sleeper: Sleeper = { dueMs: this.monotonicMs() + ms, wake, timer: setTimeout(wake, ms) };
      signal?.addEventListener('abort', abort, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Advances the time. Sleeps that are due end now, the earliest first. */
  advance(ms: number): void {
    this.#aheadMs += ms;
    const now = this.monotonicMs();
    for (const sleeper of [...this.#sleepers].sort((one, other) => one.dueMs - other.dueMs)) {
      if (sleeper.dueMs <= now) {
        sleeper.wake();
        continue;
      }
      clearTimeout(sleeper.timer);
      sleeper.timer = setTimeout(sleeper.wake, sleeper.dueMs - now);
    }
  }
}
