// A clock that a test advances. Every due sleeper is woken and runs before the next step.
import type { Clock } from '../../server/kit/clock.ts';

export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<{ dueMs: number; wake: () => void }>();

  now(): Date {
    return new Date(this.#nowMs);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper = { dueMs: this.#nowMs + ms, wake: resolve };
    this.#sleepers.add(sleeper);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    return promise.finally(() => this.#sleepers.delete(sleeper));
  }

  /** The number of sleepers. */
  get sleeperCount(): number {
    return this.#sleepers.size;
  }

  /** Advances in steps, so that a sleeper that sleeps again is woken again. */
  async advance(ms: number, stepMs = ms): Promise<void> {
    for (let remainingMs = ms; remainingMs > 0; remainingMs -= stepMs) {
      this.#nowMs += Math.min(stepMs, remainingMs);
      for (const sleeper of this.#sleepers) if (sleeper.dueMs <= this.#nowMs) sleeper.wake();
      await new Promise(done => setImmediate(done));
    }
  }
}
