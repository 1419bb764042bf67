// The wiring of the last page that each session showed, and the task that saves it.
import { LAST_PAGE_SAVE_INTERVAL_MS, LastPages } from '../domain/sessions/last-page.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';

export function openLastPages({ store }: Foundation) {
  const watcher = new LastPages(store.sessions);
  return {
    watcher,
    tasks: [
      {
        name: 'save_last_pages',
        everyMs: LAST_PAGE_SAVE_INTERVAL_MS,
        unusedMs: REST_INTERVAL_MS,
        run: () => watcher.save(),
      },
    ],
    /** Saves the last pages of sessions that keep running after this server has stopped. */
    close: async () => void (await watcher.save().catch(() => {})),
  };
}
