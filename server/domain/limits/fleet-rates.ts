// Limits the requests of each credential across all hosts of a fleet. A host takes tokens from a shared bucket in the
// database. It takes a share at a time: a twentieth of the tokens per minute, or more if more requests are waiting for
// tokens. Each request uses one token of the share. The database is therefore queried once for many requests, and
// usually before the share is used up. If no other host is known (`isAlone`), the host counts in memory.
import type { RequestRateRows } from '../../engines/store/rows/request-rates.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import {
  type CountedCredential,
  credentialIdOf,
  RequestRates,
  type RequestsPerMinute,
  rateRefused,
} from './request-rates.ts';

const SHARE_FRACTION = 1 / 20;
/** When less than this fraction of a share is left, the next share is requested. */
const REFILL_FRACTION = 1 / 4;
/**
 * How long a share is valid. After this time the shared bucket is full again, so tokens that were taken earlier no
 * longer count.
 */
const SHARE_VALIDITY_MS = 60_000;
const CREDENTIALS_MAX = 10_000;
const SWEEP_INTERVAL_MS = 600_000;

export interface FleetRatesParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly perMinute: RequestsPerMinute;
  readonly rows: RequestRateRows;
  readonly isAlone: () => boolean;
}

interface Share {
  tokens: number;
  takenMs: number;
  /** The time until which the shared bucket is empty. */
  emptyUntilMs: number;
  /** The number of requests that are waiting for tokens. */
  waitingCount: number;
  pendingRequest?: Promise<void>;
}

export class FleetRates {
  readonly #parts: FleetRatesParts;
  readonly #localRates: RequestRates;
  /** Shares by credential and kind of request. The least recently used share is first. */
  readonly #shares = new Map<string, Share>();
  #sweptMs: number;

  constructor(parts: FleetRatesParts) {
    this.#parts = parts;
    this.#localRates = new RequestRates(parts.perMinute, parts.clock);
    this.#sweptMs = parts.clock.monotonicMs();
  }

  /** Counts a request with a valid credential, or throws `rate_limited`. */
  async take(credential: CountedCredential, isWrite: boolean): Promise<void> {
    if (this.#parts.isAlone()) return this.#localRates.take(credential, isWrite);
    const requestKind = isWrite ? 'writes' : 'reads';
    const id = credentialIdOf(credential);
    const share = this.#shareOf(`${id} ${requestKind}`);
    const perMinute = this.#parts.perMinute[requestKind];
    const shareSize = Math.ceil(perMinute * SHARE_FRACTION);
    const requestShare = (): Promise<void> =>
      this.#requestTokens(share, { id, what: requestKind, perMinute }, Math.max(shareSize, share.waitingCount));
    // Requests that arrive while a share is being requested wait for the same response. The response may contain fewer
    // tokens than there are waiting requests, although the shared bucket has more. The requests that got no token then
    // ask for another share. The loop ends because each response contains tokens or sets `emptyUntilMs`.
    while (!this.#takeFrom(share)) {
      const waitMs = share.emptyUntilMs - this.#now();
      if (waitMs > 0) throw rateRefused(requestKind, perMinute, waitMs);
      share.waitingCount += 1;
      try {
        share.pendingRequest ??= requestShare();
        await share.pendingRequest;
      } catch (error) {
        this.#parts.log.warn('rates.not_shared', { reason: reason(error) });
        return this.#localRates.take(credential, isWrite);
      } finally {
        share.waitingCount -= 1;
      }
    }
    const isLow = share.tokens < shareSize * REFILL_FRACTION && this.#now() >= share.emptyUntilMs;
    if (isLow && !share.pendingRequest) {
      share.pendingRequest = requestShare();
      share.pendingRequest.catch(() => {}); // If this fails, the next request that needs tokens asks for a share again.
    }
  }

  #takeFrom(share: Share): boolean {
    if (this.#now() - share.takenMs > SHARE_VALIDITY_MS) share.tokens = 0;
    if (share.tokens < 1) return false;
    share.tokens -= 1;
    return true;
  }

  async #requestTokens(share: Share, bucket: Parameters<RequestRateRows['take']>[0], amount: number): Promise<void> {
    try {
      const { granted, waitMs } = await this.#parts.rows.take(bucket, amount);
      const nowMs = this.#now();
      if (granted > 0) share.takenMs = nowMs;
      share.tokens += granted;
      share.emptyUntilMs = nowMs + waitMs;
    } finally {
      delete share.pendingRequest;
    }
    await this.#sweepIfDue();
  }

  #shareOf(name: string): Share {
    const share = this.#shares.get(name) ?? { tokens: 0, takenMs: 0, emptyUntilMs: 0, waitingCount: 0 };
    this.#shares.delete(name);
    this.#shares.set(name, share);
    const [oldest] = this.#shares.keys();
    if (this.#shares.size > 2 * CREDENTIALS_MAX && oldest !== undefined) this.#shares.delete(oldest);
    return share;
  }

  async #sweepIfDue(): Promise<void> {
    if (this.#now() - this.#sweptMs < SWEEP_INTERVAL_MS) return;
    this.#sweptMs = this.#now();
    await this.#parts.rows.sweep().catch(error => this.#parts.log.warn('rates.not_swept', { reason: reason(error) }));
  }

  #now(): number {
    return this.#parts.clock.monotonicMs();
  }
}
