// Deletes the logs of sessions that ended more than 31 days ago. Due logs are found from the rows, so it may run at any time.
import type { LogRows } from '../../engines/store/rows/logs.ts';
import { type Clock, plus } from '../../kit/clock.ts';

export const LOGS_KEPT_MS = 31 * 24 * 60 * 60 * 1000;
/** Sessions per statement, and statements per run: a long backlog is deleted in steps. */
const BATCH = 50;
const BATCHES_MAX = 100;

export async function forgetOldLogs(logs: Pick<LogRows, 'forget'>, clock: Clock): Promise<{ forgotten: number }> {
  const endedBefore = plus(clock.now(), -LOGS_KEPT_MS);
  let forgotten = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch++) {
    const count = await logs.forget(endedBefore, BATCH);
    forgotten += count;
    if (count < BATCH) break;
  }
  return { forgotten };
}
