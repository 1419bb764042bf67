// The wiring of usage: what each session uses, and the task that saves it.
import { SessionUsage, USAGE_SAVE_MS } from '../domain/usage/session-usage.ts';
import type { Foundation } from './foundation.ts';

export function openUsage({ store }: Foundation) {
  const watcher = new SessionUsage({ rows: store.usage, recordings: store.recordings });
  return {
    watcher,
    tasks: [{ name: 'save_usage', everyMs: USAGE_SAVE_MS, run: () => watcher.save() }],
    /** Saves the bytes of sessions that continue under the next server. */
    close: async () => void (await watcher.save().catch(() => {})),
  };
}
