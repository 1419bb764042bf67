// The only file that reads the time. Everything with a deadline takes a Clock, so that a test can advance the time.
import { performance } from 'node:perf_hooks';
import { setTimeout as timer } from 'node:timers/promises';

export interface Clock {
  /** Wall time. */
  now(): Date;
  /** Monotonic time in milliseconds, for durations. */
  monotonicMs(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      await timer(ms, undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};

/**
 * Calls `callback` when the clock reaches this time, or at once if the time has passed. Closing the result cancels the
 * call.
 */
export function callAt(clock: Clock, time: Date, callback: () => void): { close(): void } {
  const closeController = new AbortController();
  const timeReached = clock.sleep(Math.max(0, time.getTime() - clock.now().getTime()), closeController.signal);
  timeReached.then(callback, () => {}); // Closing the result aborts the sleep, which then rejects.
  return { close: () => closeController.abort() };
}

/**
 * Returns how long to wait until the next multiple of `everyMs` on the monotonic clock that is at least half of `everyMs`
 * away. Loops that wait for the same multiples wake the process once for all of them: a wake-up costs more than the
 * short work of such a loop.
 */
export function msToSharedTick(clock: Clock, everyMs: number): number {
  const waitMs = everyMs - (clock.monotonicMs() % everyMs);
  return waitMs < everyMs / 2 ? waitMs + everyMs : waitMs;
}

export const addMs = (time: Date, ms: number): Date => new Date(time.getTime() + ms);
