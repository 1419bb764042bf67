// Assembles the parts of the log domain: the watcher, the service and the tasks.
import type { SessionRows } from '../../engines/store/rows/sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../../kit/task.ts';
import { forgetEnded } from '../forget-ended.ts';
import type { PageNumbers } from '../sessions/page-numbers.ts';
import type { Watcher } from '../sessions/watchers.ts';
import { LogBook } from './log-book.ts';
import { LogService } from './logs.ts';
import { logWatcher } from './watcher.ts';

/** Interval between writes. A server that is killed loses the entries of about one interval. */
const WRITE_INTERVAL_MS = 1_000;
const FORGET_INTERVAL_MS = 3_600_000;

export interface LogsDeps {
  readonly store: Pick<Store, 'logs'> & { readonly sessions: Pick<SessionRows, 'get'> };
  readonly pages: PageNumbers;
  readonly isConsoleLogged: boolean;
  readonly version: string;
  /** How long logs are kept after the end of the session. */
  readonly keptMs: number;
}

export function openLogs(
  { clock, log }: Runtime,
  { store, pages, isConsoleLogged: console, version, keptMs }: LogsDeps,
) {
  const service = new LogService({ logs: store.logs, sessions: store.sessions, clock, version, keptMs });
  const book = new LogBook({ rows: store.logs, clock, log });
  const watcher: Watcher = {
    name: 'logs',
    attend: logWatcher({ book, pages, isConsoleLogged: console, clock }),
    // If the browser failed while the log was being opened, `attend` returned nothing that would end the log.
    ended: ({ id }) =>
      void book.end(id).catch(error => log.warn('logs.not_ended', { sessionId: id, reason: reason(error) })),
  };
  return {
    book,
    watcher,
    service,
    tasks: [
      { name: 'write_logs', everyMs: WRITE_INTERVAL_MS, unusedMs: REST_INTERVAL_MS, run: () => book.write() },
      {
        name: 'forget_logs',
        everyMs: FORGET_INTERVAL_MS,
        run: () => forgetEnded(clock, { keptMs, forget: store.logs.forget, batchSize: 50, batchesMax: 100 }),
      },
    ],
  };
}
