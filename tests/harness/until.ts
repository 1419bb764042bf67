// Waits with a time limit. The error at a timeout names the awaited condition and the last observed value.
import { inspect } from 'node:util';

const FIRST_INTERVAL_MS = 25;
/**
 * The factor by which each interval is longer than the previous one. Checks are often requests, and frequent requests
 * slow down the work for which the test waits.
 */
const INTERVAL_FACTOR = 1.15;
const INTERVAL_MS_MAX = 100;
/** The default time limit, which is long so that a busy machine does not make a test fail. */
export const WAIT_TIMEOUT_MS = 60_000;

/**
 * Calls `look` until its value satisfies the condition, and returns the value. `firstIntervalMs` is the first interval.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T> | T,
  satisfies: (seen: T) => boolean = Boolean,
  withinMs = WAIT_TIMEOUT_MS,
  firstIntervalMs?: number,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (let pauseMs = firstIntervalMs ?? FIRST_INTERVAL_MS; ; pauseMs *= INTERVAL_FACTOR) {
    const seen = await look();
    if (satisfies(seen)) return seen;
    if (performance.now() > deadline)
      throw new Error(`waited ${withinMs} ms for ${what}; last seen: ${inspect(seen, { depth: 5 })}`);
    await new Promise(resolve => setTimeout(resolve, Math.min(pauseMs, INTERVAL_MS_MAX)));
  }
}

/** Settles like the promise, or rejects after the time limit with an error that names what was awaited. */
export async function withTimeLimit<T>(what: string, promise: Promise<T>, withinMs = WAIT_TIMEOUT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${withinMs} ms for ${what}`)), withinMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
