// Listens to a session's browser on the server's own channels and keeps its log, whatever the clients enable. A session
// without a log is not listened to at all.
import type { LogKind } from '../../../contract/logs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { ObservedTarget } from '../sessions/machinery.ts';
import type { PageNumbers, SessionPages } from '../sessions/page-numbers.ts';
import type { Attendance } from '../sessions/watchers.ts';
import { BrowserEntries, kindOf } from './browser-entries.ts';
import { CommandLog } from './command-log.ts';
import type { LogBook } from './log-book.ts';
import type { SessionLog } from './session-log.ts';
import type { Said } from './values.ts';

/** Bodies are not logged; what Chromium would keep of them for us it need not keep. */
const NO_BODIES = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

export interface LogWatcherParts {
  readonly book: LogBook;
  readonly pages: PageNumbers;
  /** Pages can find out that the console is listened to; an operator may not want that. */
  readonly console: boolean;
  readonly clock: Clock;
}

/** What is listened to. */
export interface Listened {
  readonly browser: Pick<LiveSession['browser'], 'observe'>;
  tap: LiveSession['tap'];
  readonly responseTypes: Pick<LiveSession['responseTypes'], 'heard'>;
}

type Attend = (live: Listened, row: SessionRow) => Promise<Attendance | undefined>;

export const logWatcher =
  (parts: LogWatcherParts): Attend =>
  async (live, row) =>
    row.settings.logSession === false ? undefined : listen(parts, live, row);

async function listen(parts: LogWatcherParts, live: Listened, row: SessionRow): Promise<Attendance> {
  const pages = await parts.pages.of(live, row);
  const log = await parts.book.begin(row);
  const ear = new Ear(parts, pages, log, live.responseTypes);
  const pageOf = (targetId: string): number | undefined => ear.pageOf(targetId);
  log.pageOf = pageOf;
  live.tap = new CommandLog({ log, pageOf, clock: parts.clock });
  await live.browser.observe({ target: target => ear.attach(target) });
  return {
    // The channels go with the browser, or are ended by whoever adopts it: a dead one would not answer.
    leave: () => {
      ear.stop();
      return parts.book.end(row.id);
    },
  };
}

class Ear {
  readonly #parts: LogWatcherParts;
  readonly #pages: SessionPages;
  readonly #log: SessionLog;
  readonly #types: Listened['responseTypes'];
  readonly #entries = new BrowserEntries();
  #hears = true;
  /** Of pages, and of the frames and workers in them. */
  readonly #pageOf = new Map<string, number>();

  constructor(parts: LogWatcherParts, pages: SessionPages, log: SessionLog, types: Listened['responseTypes']) {
    this.#parts = parts;
    this.#pages = pages;
    this.#log = log;
    this.#types = types;
  }

  pageOf(targetId: string): number | undefined {
    return this.#pageOf.get(targetId);
  }

  stop(): void {
    this.#hears = false;
  }

  attach(target: ObservedTarget): void {
    const page = this.#pages.of(target);
    if (page !== undefined) this.#pageOf.set(target.id, page);
    if (target.kind !== 'page') target.whenGone(() => this.#pageOf.delete(target.id));
    target.on((method, params) => this.#hear(target, page, method, params));
    if (this.#parts.console) target.say('Runtime.enable');
    target.say('Log.enable');
    target.say('Network.enable', NO_BODIES);
    if (target.kind !== 'page' && target.kind !== 'iframe') return;
    target.say('Page.enable');
    target.say('Page.setLifecycleEventsEnabled', { enabled: true });
  }

  #hear(target: ObservedTarget, page: number | undefined, method: string, params: Said): void {
    const kind = this.#hears ? kindOf(method) : undefined;
    if (kind === 'network') this.#types.heard(method, params);
    // What is told by the thousand is judged before it is looked at.
    if (!kind || (kind === 'console' && !this.#log.takes(kind))) return;
    try {
      this.#enter(kind, target, page, method, params);
    } catch (error) {
      this.#log.unreadable(kind, error);
    }
  }

  #enter(kind: LogKind, target: ObservedTarget, page: number | undefined, method: string, params: Said): void {
    const entry = this.#entries.of(kind, method, params, this.#parts.clock.now().getTime());
    // Pages tell whoever comes what they said before; a predecessor of ours has heard most of it.
    if (kind === 'console' && !target.fresh && entry && entry.at <= this.#log.heardUntilMs) return;
    if (entry) this.#log.add({ ...entry, ...(page === undefined ? {} : { page }) });
  }
}
