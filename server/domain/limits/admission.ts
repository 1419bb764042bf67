// Whether an application may have one more session, decided from its limits, its present use and the request. Pure. The
// store calls it while the limits and the use are locked.
import type { BrowserLimits } from '../../../contract/limits.ts';
import type { ApplicationUse } from '../../engines/store/rows/place.ts';
import { plus } from '../../kit/clock.ts';
import { invalidRequest } from '../faults.ts';
import { RETRY_AFTER_SECONDS, type Refusal, refusal } from './refusals.ts';
import { secondsToNextDay } from './utc-day.ts';

/** `maxCreatesPerMinute` counts the creates of this period. */
export const CREATES_WINDOW_MS = 60_000;

/** The limit that will be reached first, for the `x-ratelimit-*` headers. */
export interface Quota {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

export interface Admitted {
  readonly expiresAt: Date;
  /** The new session is counted. */
  readonly quota: Quota;
}

export type Admission = { readonly admitted: Admitted } | { readonly refused: Refusal };

/** Throws if the requested time limit is not allowed, whatever else is free. */
export function decideAdmission(
  limits: BrowserLimits,
  use: ApplicationUse,
  create: { readonly createdAt: Date; readonly timeout?: number },
): Admission {
  const { maxConcurrent, maxCreatesPerMinute, egressBytesPerDay } = limits;
  const { createdAt } = create;
  const expiresAt = plus(createdAt, 1000 * timeoutSeconds(limits, create.timeout));
  if (use.egressBytes >= egressBytesPerDay)
    return { refused: refusal('egress', egressBytesPerDay, use.egressBytes, secondsToNextDay(createdAt)) };
  const windowEnds = plus(use.oldest ?? createdAt, CREATES_WINDOW_MS);
  const resetSeconds = Math.max(1, Math.ceil((windowEnds.getTime() - createdAt.getTime()) / 1000));
  if (use.living >= maxConcurrent) return { refused: refusal('concurrent', maxConcurrent, use.living) };
  if (use.created >= maxCreatesPerMinute)
    return { refused: refusal('minute', maxCreatesPerMinute, use.created, resetSeconds) };
  const concurrent = { limit: maxConcurrent, remaining: maxConcurrent - use.living - 1 };
  const minute = { limit: maxCreatesPerMinute, remaining: maxCreatesPerMinute - use.created - 1 };
  const quota =
    concurrent.remaining <= minute.remaining
      ? { ...concurrent, resetSeconds: RETRY_AFTER_SECONDS }
      : { ...minute, resetSeconds };
  return { admitted: { expiresAt, quota } };
}

/** The time limit of a session. Throws if it is above the maximum of the application. */
export function timeoutSeconds(
  { maxTimeout, defaultTimeout }: Pick<BrowserLimits, 'maxTimeout' | 'defaultTimeout'>,
  requested?: number,
): number {
  if (requested !== undefined && requested > maxTimeout)
    throw invalidRequest([
      { path: 'timeout', message: `is ${requested}; the application's limit maxTimeout is ${maxTimeout} seconds` },
    ]);
  return requested ?? defaultTimeout;
}
