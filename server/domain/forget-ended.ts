// Deletes the data of sessions that ended long ago, in batches. The rows show what is due, so the task may run at any
// time.
import { addMs, type Clock } from '../kit/clock.ts';

export interface ForgetOptions {
  /** How long the data is kept after the end of the session. */
  readonly keptMs: number;
  /** Returns the number of sessions that were deleted, at most `batch`. */
  readonly forget: (endedBefore: Date, batch: number) => Promise<number>;
  /** Maximum number of sessions per statement. */
  readonly batch: number;
  /** Maximum number of statements per run. A long backlog is deleted in several runs. */
  readonly batchesMax: number;
}

export async function forgetEnded(
  clock: Clock,
  { keptMs, forget, batch, batchesMax }: ForgetOptions,
): Promise<{ forgotten: number }> {
  const endedBefore = addMs(clock.now(), -keptMs);
  let forgotten = 0;
  for (let run = 0; run < batchesMax; run++) {
    const count = await forget(endedBefore, batch);
    forgotten += count;
    if (count < batch) break;
  }
  return { forgotten };
}
