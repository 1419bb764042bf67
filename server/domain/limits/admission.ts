// Whether a session may begin: asks the one transaction that knows, at once or from the line, and says in numbers why not.
import { type SomeBrowserLimits, WAIT_MAX_SECONDS } from '../../../contract/limits.ts';
import type { Admission as Ask, Placed, Seats } from '../../engines/store/rows/admission.ts';
import type { IdempotencyRun } from '../../engines/store/rows/idempotency.ts';
import type { LimitsRows } from '../../engines/store/rows/limits.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { invalidRequest } from '../faults.ts';
import { configuredLimits, effectiveLimits, readConfigured } from './browser-limits.ts';
import { concurrentRefusal, hostRefusal, minuteRefusal, type Refusal, Refused } from './refusals.ts';
import type { Tried, WaitingLine } from './waiting-line.ts';

const WINDOW_MS = 60_000;

export interface AdmissionWish {
  readonly application: ApplicationId;
  /** Seconds that the caller asked for. Absent: the application's default. */
  readonly timeout?: number;
  readonly waitSeconds?: number;
  readonly signal: AbortSignal;
  readonly run?: IdempotencyRun;
  /** The transaction, on a fresh row. */
  readonly place: (ask: Ask) => Promise<Placed>;
}

/** The limit that will refuse first, for the `x-ratelimit-*` headers. */
export interface Quota {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

export interface Admitted {
  readonly row: SessionRow;
  readonly quota: Quota;
  readonly waitedMs: number;
}

/** What a placement leaves behind for `admit`. */
type Got = Pick<Admitted, 'row' | 'quota'>;
export type SessionLine = WaitingLine<Got>;

export interface AdmissionParts {
  readonly limits: Pick<LimitsRows, 'get'>;
  readonly line: SessionLine;
  /** The operator's, without the slots: those are counted by the host. */
  readonly ceiling: SomeBrowserLimits;
  readonly clock: Clock;
  /** Told of each refusal, for the metrics. */
  readonly refused: (why: Refusal['why']) => void;
}

export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  async admit(wish: AdmissionWish): Promise<Admitted> {
    const { application, signal, waitSeconds } = wish;
    try {
      const { got, waitedMs } = await this.#parts.line.admit({
        application,
        signal,
        ...(waitSeconds === undefined ? {} : { waitMs: 1000 * Math.min(waitSeconds, WAIT_MAX_SECONDS) }),
        attempt: () => this.#attempt(wish),
        maxWaiting: async () => (await this.effective(application)).maxWaiting,
      });
      return { ...got, waitedMs };
    } catch (error) {
      if (error instanceof Refused) this.#parts.refused(error.why);
      throw error;
    }
  }

  /** Nobody waits any longer: the service stops. */
  close(reason: () => Error): void {
    this.#parts.line.close(reason);
  }

  /** What holds for the application now. */
  async effective(application: ApplicationId) {
    const row = await this.#parts.limits.get(application);
    return this.#effective(row?.configured ?? {});
  }

  /** The time limit in seconds, given what holds; throws when it is above the longest. */
  timeoutOf({ maxTimeout, defaultTimeout }: { maxTimeout: number; defaultTimeout: number }, asked?: number): number {
    if (asked !== undefined && asked > maxTimeout)
      throw invalidRequest([
        { path: 'timeout', message: `is ${asked}; the application's limit maxTimeout is ${maxTimeout} seconds` },
      ]);
    return asked ?? defaultTimeout;
  }

  async #attempt(wish: AdmissionWish): Promise<Tried<Got>> {
    const placed = await wish.place({
      terms: configured => {
        const { maxConcurrent, maxCreatesPerMinute, ...times } = this.#effective(configured);
        return { maxConcurrent, maxCreatesPerMinute, lifeMs: 1000 * this.timeoutOf(times, wish.timeout) };
      },
      ...(wish.run ? { run: wish.run } : {}),
    });
    if ('placed' in placed) return { got: { row: placed.placed, quota: this.#quota(placed.seats) } };
    if ('full' in placed) return { refusal: hostRefusal(placed.full.slots, placed.full.used) };
    const { concurrent, minute } = placed.seats;
    if (placed.refused === 'concurrent') return { refusal: concurrentRefusal(concurrent.limit, concurrent.used) };
    return { refusal: minuteRefusal(minute.limit, minute.used, this.#secondsLeft(minute)) };
  }

  #effective(configured: Parameters<typeof readConfigured>[0]) {
    return effectiveLimits(configuredLimits(readConfigured(configured)), this.#parts.ceiling);
  }

  #quota(seats: Seats | undefined): Quota {
    if (!seats) throw new Error('a session was placed without its application being asked');
    const { concurrent, minute } = seats;
    const [seatsLeft, createsLeft] = [concurrent.limit - concurrent.used, minute.limit - minute.used];
    if (seatsLeft <= createsLeft)
      return {
        limit: concurrent.limit,
        remaining: seatsLeft,
        resetSeconds: concurrentRefusal(concurrent.limit, concurrent.used).retryAfterSeconds,
      };
    return { limit: minute.limit, remaining: createsLeft, resetSeconds: this.#secondsLeft(minute) };
  }

  /** Until the oldest create leaves the window. */
  #secondsLeft({ oldest }: Seats['minute']): number {
    const now = this.#parts.clock.now();
    const leftMs = plus(oldest ?? now, WINDOW_MS).getTime() - now.getTime();
    return Math.max(1, Math.ceil(leftMs / 1000));
  }
}
