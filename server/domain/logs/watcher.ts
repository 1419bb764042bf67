// Records the log of a session from the server's own channels, independently of the events that clients enable. A
// session without a log is not observed.
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Attendance } from '../sessions/attendance.ts';
import type { ObservedTarget } from '../sessions/browser-host.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { PageNumbers, SessionPages } from '../sessions/page-numbers.ts';
import { BrowserEntries, type BrowserKind, kindOf } from './browser-entries.ts';
import { CommandLog } from './command-log.ts';
import type { LogBook } from './log-book.ts';
import type { SessionLog } from './session-log.ts';
import { TypedRequests, withoutTypedText } from './typed-by-person.ts';
import { rememberTyped } from './typed-commands.ts';
import type { UntrustedObject } from './values.ts';

/** Bodies are not logged, so Chromium need not buffer them. */
const NO_BODIES = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

export interface LogWatcherParts {
  readonly book: LogBook;
  readonly pages: PageNumbers;
  /** Whether to log the console. Pages can detect that their console is observed, so the operator can turn this off. */
  readonly isConsoleLogged: boolean;
  readonly clock: Clock;
}

/** The parts of a session that the log uses. */
export interface ObservedSession {
  readonly browser: Pick<LiveSession['browser'], 'observe'>;
  tap: LiveSession['tap'];
  redactTyped: LiveSession['redactTyped'];
  rememberTyped: LiveSession['rememberTyped'];
  /** How the session is hidden while a person has control. Undefined if nothing is hidden. */
  readonly cover: LiveSession['cover'];
  readonly responseTypes: Pick<LiveSession['responseTypes'], 'handleEvent'>;
  readonly secrets: LiveSession['secrets'];
}

type AttendSession = (liveSession: ObservedSession, row: SessionRow) => Promise<Attendance | undefined>;

export const logWatcher =
  (parts: LogWatcherParts): AttendSession =>
  async (liveSession, row) =>
    row.settings.logSession === false ? undefined : attendSession(parts, liveSession, row);

async function attendSession(
  parts: LogWatcherParts,
  liveSession: ObservedSession,
  row: SessionRow,
): Promise<Attendance> {
  const pages = await parts.pages.of(liveSession, row);
  const log = await parts.book.begin(row);
  const recorder = new Recorder(parts, pages, log, liveSession);
  const pageOf = (targetId: string): number | undefined => recorder.pageOf(targetId);
  log.pageOf = pageOf;
  log.secrets = liveSession.secrets;
  const commandLog = new CommandLog({ log, pageOf, clock: parts.clock });
  liveSession.tap = commandLog;
  liveSession.redactTyped = text => log.redactTyped(text);
  liveSession.rememberTyped = (method, target, params) => rememberTyped(log.typedText, method, [target], params);
  await liveSession.browser.observe({ target: target => recorder.attach(target) });
  return {
    // Channels are not detached here: a dead browser would not respond. They end with the browser, or an adopting
    // process detaches them.
    leave: () => {
      recorder.stop();
      commandLog.logUnanswered();
      return parts.book.end(row.id);
    },
  };
}

class Recorder {
  readonly #parts: LogWatcherParts;
  readonly #pages: SessionPages;
  readonly #log: SessionLog;
  readonly #liveSession: Pick<ObservedSession, 'responseTypes' | 'cover'>;
  readonly #typedRequests = new TypedRequests();
  readonly #entries = new BrowserEntries();
  #isRecording = true;
  /** Page number by target id, for pages and for the frames and workers in them. */
  readonly #pageNumbers = new Map<string, number>();

  constructor(
    parts: LogWatcherParts,
    pages: SessionPages,
    log: SessionLog,
    liveSession: Pick<ObservedSession, 'responseTypes' | 'cover'>,
  ) {
    this.#parts = parts;
    this.#pages = pages;
    this.#log = log;
    this.#liveSession = liveSession;
  }

  pageOf(targetId: string): number | undefined {
    return this.#pageNumbers.get(targetId);
  }

  stop(): void {
    this.#isRecording = false;
  }

  attach(target: ObservedTarget): void {
    const page = this.#pages.of(target);
    if (page !== undefined) this.#pageNumbers.set(target.id, page);
    if (target.kind !== 'page') target.whenGone(() => this.#pageNumbers.delete(target.id));
    target.on((method, params) => this.#handle(target, page, method, params));
    if (this.#parts.isConsoleLogged) target.post('Runtime.enable');
    target.post('Log.enable');
    target.post('Network.enable', NO_BODIES);
    if (target.kind !== 'page' && target.kind !== 'iframe') return;
    target.post('Page.enable');
    target.post('Page.setLifecycleEventsEnabled', { enabled: true });
  }

  #handle(target: ObservedTarget, page: number | undefined, method: string, params: UntrustedObject): void {
    const kind = this.#isRecording ? kindOf(method) : undefined;
    if (kind === 'network') this.#liveSession.responseTypes.handleEvent(method, params);
    if (kind === 'console' && this.#liveSession.cover) return;
    // Console events can be frequent, so they are checked against the limits before they are parsed.
    if (!kind || (kind === 'console' && !this.#log.canAccept(kind))) return;
    try {
      this.#add(kind, target, page, method, params);
    } catch (error) {
      this.#log.countUnreadable(kind, error);
    }
  }

  #add(
    kind: BrowserKind,
    target: ObservedTarget,
    page: number | undefined,
    method: string,
    payload: UntrustedObject,
  ): void {
    // Secrets are removed before text is truncated, because a truncated secret would not be recognized.
    const params = this.#log.secrets.cleanAll(payload);
    const entry = this.#entries.of(kind, method, params, this.#parts.clock.now().getTime());
    // When console events are enabled, pages send earlier messages again. An earlier process has stored most of them.
    if (kind === 'console' && !target.isNew && entry && entry.at <= this.#log.consoleUntilMs) return;
    if (!entry) return;
    const mayContainTypedText = this.#typedRequests.mayContainTypedText(params, this.#liveSession.cover !== undefined);
    const loggedEntry = mayContainTypedText ? { ...entry, params: withoutTypedText(entry.params) } : entry;
    this.#log.add({ ...loggedEntry, ...(page === undefined ? {} : { page }) });
  }
}
