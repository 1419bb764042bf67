// Decides whether an application may have one more session, from its limits, its use and the request. Pure. The store
// compares the use with the returned `PlacementTerms` while the limits of the application are locked.
import type { BrowserLimits } from '../../../contract/limits.ts';
import type { ApplicationUse, PlacementTerms } from '../../engines/store/rows/place.ts';
import { addMs } from '../../kit/clock.ts';
import { invalidRequest } from '../faults.ts';
import { RETRY_AFTER_SECONDS, type Refusal, refusal } from './refusals.ts';
import { secondsToNextDay } from './utc-day.ts';

/** `maxCreatesPerMinute` limits the number of creates in this period. */
export const CREATES_WINDOW_MS = 60_000;

/** The limit that will be reached first, for the `x-ratelimit-*` headers. */
export interface Quota {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/**
 * Returns the conditions under which one session may be placed. Throws if the requested time limit is above the maximum
 * of the application.
 */
export const termsOf = (
  limits: BrowserLimits,
  { createdAt, timeout }: { readonly createdAt: Date; readonly timeout?: number },
): PlacementTerms => ({
  expiresAt: addMs(createdAt, 1000 * timeoutSeconds(limits, timeout)),
  below: {
    living: limits.maxConcurrent,
    created: limits.maxCreatesPerMinute,
    egressBytes: limits.egressBytesPerDay,
  },
});

/** Returns why a create was refused. `use` is the application's use, which has reached a limit. */
export function refusalOf(limits: BrowserLimits, use: ApplicationUse, createdAt: Date): Refusal {
  const { maxConcurrent, maxCreatesPerMinute, egressBytesPerDay } = limits;
  if (use.egressBytes >= egressBytesPerDay)
    return refusal('egress', egressBytesPerDay, use.egressBytes, secondsToNextDay(createdAt));
  if (use.living >= maxConcurrent) return refusal('concurrent', maxConcurrent, use.living);
  return refusal('minute', maxCreatesPerMinute, use.created, secondsUntilOldestExpires(use, createdAt));
}

/** Returns the remaining quota after a create. `use` is the use before the create. */
export function quotaOf(limits: BrowserLimits, use: ApplicationUse, createdAt: Date): Quota {
  const { maxConcurrent, maxCreatesPerMinute } = limits;
  const sessionQuota = { limit: maxConcurrent, remaining: maxConcurrent - use.living - 1 };
  const createQuota = { limit: maxCreatesPerMinute, remaining: maxCreatesPerMinute - use.created - 1 };
  return sessionQuota.remaining <= createQuota.remaining
    ? { ...sessionQuota, resetSeconds: RETRY_AFTER_SECONDS }
    : { ...createQuota, resetSeconds: secondsUntilOldestExpires(use, createdAt) };
}

/** Seconds until the oldest create of the last minute is no longer counted. */
function secondsUntilOldestExpires({ oldest }: ApplicationUse, createdAt: Date): number {
  const windowEndsAt = addMs(oldest ?? createdAt, CREATES_WINDOW_MS);
  return Math.max(1, Math.ceil((windowEndsAt.getTime() - createdAt.getTime()) / 1000));
}

/**
 * Returns the time limit of a session, in seconds. Throws if the requested time limit is above the maximum of the
 * application.
 */
export function timeoutSeconds(
  { maxTimeout, defaultTimeout }: Pick<BrowserLimits, 'maxTimeout' | 'defaultTimeout'>,
  requestedTimeout?: number,
): number {
  if (requestedTimeout !== undefined && requestedTimeout > maxTimeout)
    throw invalidRequest([
      {
        path: 'timeout',
        message: `is ${requestedTimeout}; the application's limit maxTimeout is ${maxTimeout} seconds`,
      },
    ]);
  return requestedTimeout ?? defaultTimeout;
}
