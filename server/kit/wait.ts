// Waits with a time limit. The error message names what was waited for.
import { setTimeout as timer } from 'node:timers/promises';

export class WaitExpired extends Error {
  constructor(description: string, ms: number) {
    super(`gave up after ${ms} ms waiting for ${description}`);
    this.name = 'WaitExpired';
  }
}

/** Runs `work` with a signal that fires after `ms` real milliseconds or with `outerSignal`, whichever is first. */
export async function withTimeout<T>(
  ms: number,
  description: string,
  work: (signal: AbortSignal) => Promise<T>,
  outerSignal?: AbortSignal,
): Promise<T> {
  outerSignal?.throwIfAborted();
  const controller = new AbortController();
  const expiry = Promise.withResolvers<never>();
  const fail = (error: unknown): void => {
    expiry.reject(error);
    controller.abort(error);
  };
  const timeout = setTimeout(() => fail(new WaitExpired(description, ms)), ms);
  const onOuterAbort = (): void => fail(outerSignal?.reason);
  outerSignal?.addEventListener('abort', onOuterAbort, { once: true });
  expiry.promise.catch(() => {});
  try {
    return await Promise.race([work(controller.signal), expiry.promise]);
  } finally {
    clearTimeout(timeout);
    outerSignal?.removeEventListener('abort', onOuterAbort);
  }
}

/**
 * Calls `poll` every `everyMs` milliseconds until it returns something other than undefined, for at most `ms`
 * milliseconds.
 */
export async function pollUntil<T>(
  ms: number,
  description: string,
  poll: () => Promise<T | undefined> | T | undefined,
  everyMs = 25,
  outerSignal?: AbortSignal,
): Promise<T> {
  return withTimeout(
    ms,
    description,
    async signal => {
      for (;;) {
        const result = await poll();
        if (result !== undefined) return result;
        signal.throwIfAborted();
        await timer(everyMs);
      }
    },
    outerSignal,
  );
}

/** Like `withTimeout`, for work that observes the signal and cleans up: returns only when the work has settled. */
export async function withDeadline<T>(
  ms: number,
  description: string,
  work: (signal: AbortSignal) => Promise<T>,
  outerSignal?: AbortSignal,
): Promise<T> {
  const controller = new AbortController();
  const timeout = setTimeout(() => controller.abort(new WaitExpired(description, ms)), ms);
  const signal = outerSignal ? AbortSignal.any([outerSignal, controller.signal]) : controller.signal;
  try {
    signal.throwIfAborted();
    return await work(signal);
  } catch (error) {
    // The reason for the abort is more useful than the error that the abort caused.
    signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timeout);
  }
}
