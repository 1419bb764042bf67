// Limits the requests of an application for one purpose in any 60 seconds, counted in this process.
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { fault } from '../faults.ts';

const MINUTE_MS = 60_000;
/** The most applications in memory. Above it those with the oldest latest request are removed. */
const APPLICATIONS_MAX = 10_000;

export class Rate {
  readonly #what: string;
  readonly #perMinute: number;
  readonly #clock: Clock;
  readonly #requestsMs = new Map<ApplicationId, number[]>();

  constructor(what: string, perMinute: number, clock: Clock) {
    this.#what = what;
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** Counts a request, or throws `rate_limited`. */
  take(application: ApplicationId): void {
    const now = this.#clock.monotonicMs();
    const recent = (this.#requestsMs.get(application) ?? []).filter(at => now - at < MINUTE_MS);
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= this.#perMinute) throw this.#refused(MINUTE_MS - (now - oldest));
    this.#requestsMs.delete(application);
    this.#requestsMs.set(application, [...recent, now]);
    const [first] = this.#requestsMs.keys();
    if (first !== undefined && this.#requestsMs.size > APPLICATIONS_MAX) this.#requestsMs.delete(first);
  }

  #refused(waitMs: number) {
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    return fault('rate_limited', `${this.#what} may be requested at most ${this.#perMinute} times per minute.`, {
      advice: `Wait ${retryAfterSeconds} s.`,
      details: { limit: this.#perMinute, used: this.#perMinute, scope: 'application', retryAfterSeconds },
    });
  }
}
