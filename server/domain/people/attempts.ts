// Bounds how often something may fail for a name in a time. Counted in this process, so that guessing costs no write.

import type { Clock } from '../../kit/clock.ts';
import { fault } from '../faults.ts';

const NAMES_MAX = 10_000;

export interface AttemptLimit {
  readonly failures: number;
  readonly withinMs: number;
}

export class Attempts {
  readonly #limit: AttemptLimit;
  readonly #clock: Clock;
  /** Times of failures, oldest first. */
  readonly #failures = new Map<string, number[]>();

  constructor(limit: AttemptLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** @throws Fault `rate_limited` when the name has failed too often. */
  assertFewer(name: string): void {
    const recent = this.#recent(name);
    if (recent.length < this.#limit.failures) return;
    const oldest = recent[0] ?? 0;
    const seconds = Math.ceil((oldest + this.#limit.withinMs - this.#clock.monotonicMs()) / 1000);
    throw fault('rate_limited', 'There were too many failed attempts.', {
      advice: `Try again in ${seconds} seconds.`,
      details: { retryAfterSeconds: Math.max(1, seconds) },
    });
  }

  /** Counts a failure, or any attempt where all of them are limited. */
  count(name: string): void {
    const recent = this.#recent(name);
    this.#failures.delete(name);
    this.#failures.set(name, [...recent, this.#clock.monotonicMs()]);
    const first = this.#failures.keys().next().value;
    if (this.#failures.size > NAMES_MAX && first !== undefined) this.#failures.delete(first);
  }

  #recent(name: string): number[] {
    const since = this.#clock.monotonicMs() - this.#limit.withinMs;
    return (this.#failures.get(name) ?? []).filter(at => at > since);
  }
}
