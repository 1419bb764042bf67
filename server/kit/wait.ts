// Waits with a time limit. The error message names what was waited for.
import { setTimeout as timer } from 'node:timers/promises';

export class WaitExpired extends Error {
  constructor(what: string, ms: number) {
    super(`gave up after ${ms} ms waiting for ${what}`);
    this.name = 'WaitExpired';
  }
}

/** Runs `work` with a signal that fires after `ms` real milliseconds or with `outer`, whichever is first. */
export async function within<T>(
  ms: number,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  outer?.throwIfAborted();
  const control = new AbortController();
  const expired = Promise.withResolvers<never>();
  const fail = (error: unknown): void => {
    expired.reject(error);
    control.abort(error);
  };
  const handle = setTimeout(() => fail(new WaitExpired(what, ms)), ms);
  const onOuterAbort = (): void => fail(outer?.reason);
  outer?.addEventListener('abort', onOuterAbort, { once: true });
  expired.promise.catch(() => {});
  try {
    return await Promise.race([work(control.signal), expired.promise]);
  } finally {
    clearTimeout(handle);
    outer?.removeEventListener('abort', onOuterAbort);
  }
}

/** Polls `look` until it returns something other than undefined. */
export async function until<T>(
  ms: number,
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  everyMs = 25,
  outer?: AbortSignal,
): Promise<T> {
  return within(
    ms,
    what,
    async signal => {
      for (;;) {
        const seen = await look();
        if (seen !== undefined) return seen;
        signal.throwIfAborted();
        await timer(everyMs);
      }
    },
    outer,
  );
}

/** Like `within`, for work that observes the signal and cleans up: returns only when the work has settled. */
export async function withDeadline<T>(
  ms: number,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const control = new AbortController();
  const handle = setTimeout(() => control.abort(new WaitExpired(what, ms)), ms);
  const signal = outer ? AbortSignal.any([outer, control.signal]) : control.signal;
  try {
    signal.throwIfAborted();
    return await work(signal);
  } catch (error) {
    // The reason for the abort is more useful than the error that the abort caused.
    signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(handle);
  }
}
