// Deletes the data of sessions that ended a month ago, in batches. The rows show what is due, so the task may run at
// any time.
import { addMs, type Clock } from '../kit/clock.ts';

export const KEPT_MS = 31 * 24 * 60 * 60_000;

export interface ForgetOptions {
  /** Returns the number of sessions that were deleted, at most `batch`. */
  readonly forget: (endedBefore: Date, batch: number) => Promise<number>;
  /** Maximum number of sessions per statement. */
  readonly batch: number;
  /** Maximum number of statements per run. A long backlog is deleted in several runs. */
  readonly batchesMax: number;
}

export async function forgetEnded(
  clock: Clock,
  { forget, batch, batchesMax }: ForgetOptions,
): Promise<{ forgotten: number }> {
  const endedBefore = addMs(clock.now(), -KEPT_MS);
  let forgotten = 0;
  for (let run = 0; run < batchesMax; run++) {
    const count = await forget(endedBefore, batch);
    forgotten += count;
    if (count < batch) break;
  }
  return { forgotten };
}
