// Waiting in tests, always with an end: when it is reached, the error says what was waited for and what was last seen.
import { inspect } from 'node:util';

const FIRST_MS = 25;
/** What takes longer is looked at less often: a look is often a request, and takes the time of what it waits for. */
const LONGER_EACH_TIME = 1.15;
const EVERY_MS_MAX = 100;
/** Long, because only what never comes takes so long: a machine with much else to do must not fail a test. */
export const WITHIN_MS = 60_000;

/** Looks until what is seen satisfies; gives it back. `everyMs`: between the first two looks. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T> | T,
  satisfies: (seen: T) => boolean = Boolean,
  withinMs = WITHIN_MS,
  everyMs?: number,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (let pauseMs = everyMs ?? FIRST_MS; ; pauseMs *= LONGER_EACH_TIME) {
    const seen = await look();
    if (satisfies(seen)) return seen;
    if (performance.now() > deadline)
      throw new Error(`waited ${withinMs} ms for ${what}; last seen: ${inspect(seen, { depth: 5 })}`);
    await new Promise(resolve => setTimeout(resolve, Math.min(pauseMs, EVERY_MS_MAX)));
  }
}

/** The promise's outcome, or an error that names it. */
export async function soon<T>(what: string, promise: Promise<T>, withinMs = WITHIN_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${withinMs} ms for ${what}`)), withinMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
