// Limits the attempts per address, account or application within a period. The counts are in the memory of this
// process.
import type { Clock } from '../../kit/clock.ts';
import { fault } from '../faults.ts';

/**
 * The maximum number of addresses, accounts or applications that are counted. Above it, the one whose latest attempt is
 * the oldest is removed.
 */
const NAMES_MAX = 10_000;

export interface TallyOptions {
  /** A plural noun for the counted attempts, used in the error message, for example `wrong codes`. */
  readonly what: string;
  readonly max: number;
  readonly withinMs: number;
  readonly scope: 'address' | 'account' | 'application';
}

export class Tally {
  readonly #options: TallyOptions;
  readonly #clock: Clock;
  /** The times of the attempts of each name, oldest first. */
  readonly #times = new Map<string, number[]>();

  constructor(options: TallyOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /**
   * Counts an attempt before it is made, so that concurrent attempts are counted. The returned function takes the
   * attempt back. Throws `rate_limited`.
   */
  take(name: string): () => void {
    const { max, withinMs } = this.#options;
    const now = this.#clock.monotonicMs();
    const recentTimes = (this.#times.get(name) ?? []).filter(at => now - at < withinMs);
    const [oldest] = recentTimes;
    if (oldest !== undefined && recentTimes.length >= max)
      throw tooManyAttempts(this.#options, withinMs - (now - oldest));
    this.#times.delete(name);
    this.#times.set(name, [...recentTimes, now]);
    const [leastRecentName] = this.#times.keys();
    if (leastRecentName !== undefined && this.#times.size > NAMES_MAX) this.#times.delete(leastRecentName);
    return () => this.#takeBack(name, now);
  }

  #takeBack(name: string, time: number): void {
    const times = this.#times.get(name) ?? [];
    const index = times.indexOf(time);
    if (index >= 0) this.#times.set(name, times.toSpliced(index, 1));
  }
}

export function tooManyAttempts({ what, max, withinMs, scope }: TallyOptions, waitMs: number): Error {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return fault('rate_limited', `The limit of ${max} ${what} in ${withinMs / 1000} s was reached.`, {
    advice: `Wait ${retryAfterSeconds} s.`,
    details: { limit: max, used: max, scope, retryAfterSeconds },
  });
}
