// Forgets the events of sessions that ended long ago. What is old is seen in the rows, so a look at any moment is right.
import type { EventRows } from '../../engines/store/rows/events.ts';
import { type Clock, plus } from '../../kit/clock.ts';

const KEPT_MS = 31 * 24 * 60 * 60 * 1000;
/** Sessions in one statement, and statements in one run: a long backlog goes in steps. */
const BATCH = 200;
const BATCHES_MAX = 50;

export async function forgetOldEvents(events: Pick<EventRows, 'forget'>, clock: Clock): Promise<{ forgotten: number }> {
  const endedBefore = plus(clock.now(), -KEPT_MS);
  let forgotten = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch++) {
    const count = await events.forget(endedBefore, BATCH);
    forgotten += count;
    if (count < BATCH) break;
  }
  return { forgotten };
}
