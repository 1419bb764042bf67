// Deletes the data of sessions that ended long ago, in batches. The rows contain the end times of the sessions, so the
// task may run at any time.
import { addMs, type Clock } from '../kit/clock.ts';
import { type BatchLimits, runInBatches } from './in-batches.ts';

/** `batchSize` is the maximum number of sessions per statement. */
export interface ForgetOptions extends BatchLimits {
  /** How long the data is kept after the end of the session. */
  readonly keptMs: number;
  /** Returns the number of sessions that were deleted, at most `batchSize`. */
  readonly forget: (endedBefore: Date, batchSize: number) => Promise<number>;
}

export async function forgetEnded(
  clock: Clock,
  { keptMs, forget, ...limits }: ForgetOptions,
): Promise<{ forgotten: number }> {
  const endedBefore = addMs(clock.now(), -keptMs);
  return { forgotten: await runInBatches(limits, batchSize => forget(endedBefore, batchSize)) };
}
