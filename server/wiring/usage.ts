// The wiring of usage: the usage of each session, the usage of applications per hour, and the tasks that save and sum
// usage.
import type { Applications } from '../domain/identity/applications.ts';
import { SessionUsage, USAGE_SAVE_INTERVAL_MS } from '../domain/usage/session-usage.ts';
import { USAGE_SUM_INTERVAL_MS, Usage } from '../domain/usage/usage.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';

export function openUsage({ clock }: Pick<Runtime, 'clock'>, { store }: Foundation, applications: Applications) {
  const watcher = new SessionUsage({ rows: store.usage, recordings: store.recordings });
  const service = new Usage({ rows: store.usageHours, applications, clock });
  return {
    watcher,
    service,
    tasks: [
      { name: 'save_usage', everyMs: USAGE_SAVE_INTERVAL_MS, unusedMs: REST_INTERVAL_MS, run: () => watcher.save() },
      { name: 'sum_usage', everyMs: USAGE_SUM_INTERVAL_MS, run: () => service.sum() },
      { name: 'forget_usage', everyMs: USAGE_SUM_INTERVAL_MS, run: () => service.forget() },
    ],
    /** Saves the traffic counts of sessions that continue under the next server. */
    close: async () => void (await watcher.save().catch(() => {})),
  };
}
