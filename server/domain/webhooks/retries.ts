// When a failed delivery is sent again, and when its webhook is disabled.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * The pauses after the first attempt and after each further one, as Standard Webhooks recommends: 75.6 hours in total.
 */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/** A webhook is disabled when every attempt has failed for this long. */
export const FAILURE_PERIOD_MAX_MS = 72 * HOUR_MS;

/** The pause in milliseconds after this many attempts. Undefined if no further attempt is made. */
export const pauseAfter = (attempts: number): number | undefined => RETRY_PAUSES_MS[attempts - 1];
