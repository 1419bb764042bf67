// Limits the requests per credential, with one token bucket for reads and one for writes. The buckets are in the memory
// of this process.
import type { Clock } from '../../kit/clock.ts';
import { fault } from '../faults.ts';
import type { AccountCaller, AgentCaller, ConsumerCaller } from '../identity/caller.ts';

/**
 * The maximum number of credentials that are counted, separately for reads and writes. Above it, the least recently
 * used credential is removed.
 */
const CREDENTIALS_MAX = 10_000;
const MINUTE_MS = 60_000;
/** Tolerance for rounding errors in sums of fractions. */
const ROUNDING_TOLERANCE_MS = 0.001;

/** Requests per minute. Each number is also the largest burst after a minute without requests. */
export interface RequestsPerMinute {
  readonly reads: number;
  readonly writes: number;
}

export type CountedCredential =
  | Pick<AgentCaller, 'kind' | 'keyId'>
  | Pick<AccountCaller | ConsumerCaller, 'kind' | 'via'>;

export interface RateLimiter {
  /** Counts a request with a valid credential, or throws `rate_limited`. */
  take(credential: CountedCredential, isWrite: boolean): void | Promise<void>;
}

export class RequestRates implements RateLimiter {
  readonly #reads: Buckets;
  readonly #writes: Buckets;
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  constructor({ reads, writes }: RequestsPerMinute, clock: Pick<Clock, 'monotonicMs'>) {
    this.#reads = new Buckets('reads', reads);
    this.#writes = new Buckets('writes', writes);
    this.#clock = clock;
  }

  /** Counts a request with a valid credential, or throws `rate_limited`. */
  take(credential: CountedCredential, isWrite: boolean): void {
    const buckets = isWrite ? this.#writes : this.#reads;
    buckets.take(credentialIdOf(credential), this.#clock.monotonicMs());
  }
}

export const credentialIdOf = (credential: CountedCredential): string =>
  credential.kind === 'agentKey' ? credential.keyId : credential.via.id;

class Buckets {
  readonly #requestKind: 'reads' | 'writes';
  readonly #perMinute: number;
  /**
   * The time at which each bucket is full again, by the id of the credential. The least recently used credential is
   * first.
   */
  readonly #fullAtMs = new Map<string, number>();

  constructor(requestKind: 'reads' | 'writes', perMinute: number) {
    this.#requestKind = requestKind;
    this.#perMinute = perMinute;
  }

  take(id: string, nowMs: number): void {
    const fullAtMs = Math.max(nowMs, this.#fullAtMs.get(id) ?? nowMs) + MINUTE_MS / this.#perMinute;
    const waitMs = fullAtMs - nowMs - MINUTE_MS - ROUNDING_TOLERANCE_MS;
    if (waitMs > 0) throw rateRefused(this.#requestKind, this.#perMinute, waitMs);
    this.#fullAtMs.delete(id);
    this.#fullAtMs.set(id, fullAtMs);
    if (this.#fullAtMs.size <= CREDENTIALS_MAX) return;
    const [oldest] = this.#fullAtMs.keys();
    if (oldest !== undefined) this.#fullAtMs.delete(oldest);
  }
}

export function rateRefused(requestKind: 'reads' | 'writes', limit: number, waitMs: number): Error {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return fault('rate_limited', `This credential has reached its limit of ${requestKind} per minute (limit ${limit}).`, {
    advice: `Wait ${retryAfterSeconds} s. To send more, use a separate key for each program, or ask the operator for a higher limit.`,
    details: { limit, used: limit, scope: 'credential', name: `${requestKind}PerMinute`, retryAfterSeconds },
  });
}
