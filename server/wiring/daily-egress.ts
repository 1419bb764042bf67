// The wiring of daily byte counts: their watcher, and the tasks that write and remove them.

import { utcDay } from '../domain/limits/utc-day.ts';
import { DailyEgress, type DailyEgressParts, EGRESS_COUNT_INTERVAL_MS } from '../domain/network/daily-egress.ts';
import { closedPolicy } from '../engines/egress/policy.ts';
import { addMs } from '../kit/clock.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 31 * 24 * HOUR_MS;

export function openDailyEgress({ clock, log }: Runtime, { store }: Foundation, end: DailyEgressParts['end']) {
  const { egressDays: rows } = store;
  const watcher = new DailyEgress({ rows, usedUpPolicy: closedPolicy('egress_limit'), end, clock, log });
  const forget = async () => ({ removed: await rows.forget(utcDay(addMs(clock.now(), -RETENTION_MS))) });
  return {
    watcher,
    tasks: [
      {
        name: 'count_egress',
        everyMs: EGRESS_COUNT_INTERVAL_MS,
        unusedMs: REST_INTERVAL_MS,
        run: () => watcher.count(),
      },
      { name: 'forget_egress', everyMs: HOUR_MS, run: forget },
    ],
    /** Writes the counts of sessions that continue under the next server. */
    close: async () => void (await watcher.count().catch(() => {})),
  };
}
