// The last page that each session showed: title and redacted URL, for the list of sessions and its search. The browser
// reports each new address, but not new titles. Titles are therefore read a few times after each new address, and when
// the session ends.
import type { ChangedPage } from '../../engines/browser/control.ts';
import type { LastPageRow, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { boundedText } from '../../kit/foreign.ts';
import type { SessionId } from '../../kit/ids.ts';
import { withTimeout } from '../../kit/wait.ts';
import { redactText, redactUrl } from '../logs/redact.ts';
import type { Attendance } from './attendance.ts';
import type { LiveSession } from './live.ts';
import type { Watcher } from './watchers.ts';

/** How often changed pages are saved. A process that is killed loses the changes since the last save. */
export const LAST_PAGE_SAVE_INTERVAL_MS = 2_000;
/** How many times a title is read after a new address. Most pages set it within the first seconds. */
const TITLE_READS_MAX = 3;
const TITLE_TIMEOUT_MS = 1_000;
const TITLE_CHARACTERS_MAX = 300;

interface WatchedSession extends Pick<LiveSession, 'secrets' | 'cover' | 'onCover'> {
  readonly id: SessionId;
  readonly browser: {
    readonly changedPage: ChangedPage | undefined;
    titleOf(page: ChangedPage): Promise<string | undefined>;
  };
}

interface PageReading {
  readonly live: WatchedSession;
  page?: ChangedPage;
  readsLeft: number;
  savedRow?: LastPageRow;
  /** The address in the saved row before redaction, as the browser reported it. */
  savedUrl?: string;
  /** The address at the end of a hand-off in which the session was hidden. */
  hiddenUrl?: string;
}

export class LastPages implements Watcher {
  readonly name = 'lastPage';
  readonly #rows: Pick<SessionRows, 'setLastPages'>;
  readonly #readings = new Map<SessionId, PageReading>();

  constructor(rows: Pick<SessionRows, 'setLastPages'>) {
    this.#rows = rows;
  }

  /**
   * Tracks the last page of the session. After a browser has died, its last address is still known, but its title is
   * not.
   */
  async attend(liveSession: WatchedSession): Promise<Attendance> {
    const reading: PageReading = { live: liveSession, readsLeft: 0 };
    this.#readings.set(liveSession.id, reading);
    let wasHidden = false;
    const coverSubscription = liveSession.onCover(cover => {
      if (wasHidden && !cover) reading.hiddenUrl = liveSession.browser.changedPage?.url ?? '';
      wasHidden = cover !== undefined;
    });
    return {
      beforeShutDown: () => this.#save([reading]),
      leave: async end => {
        coverSubscription.close();
        if (!end) return;
        this.#readings.delete(liveSession.id);
        if (liveSession.browser.changedPage && liveSession.browser.changedPage.url !== reading.savedUrl)
          await this.#save([reading]);
      },
    };
  }

  /**
   * Stops tracking the session. If its start failed, `leave` was called without an end, and the session is still
   * tracked.
   */
  ended({ id }: Pick<SessionRow, 'id'>): void {
    this.#readings.delete(id);
  }

  /** Saves the pages of sessions whose address has recently changed. Returns the number of sessions checked. */
  async save(): Promise<{ read: number }> {
    const dueReadings = [...this.#readings.values()].filter(takeRead);
    await this.#save(dueReadings);
    return { read: dueReadings.length };
  }

  async #save(readings: readonly PageReading[]): Promise<void> {
    const pages = await Promise.all(
      readings.map(async reading => {
        const changedPage = reading.live.browser.changedPage;
        return { reading, shown: changedPage, page: changedPage && (await readLastPage(reading, changedPage)) };
      }),
    );
    const changedReadings = pages.flatMap(({ reading, shown: changedPage, page }) =>
      page &&
      changedPage &&
      (page.pageUrl !== reading.savedRow?.pageUrl || page.pageTitle !== reading.savedRow.pageTitle)
        ? [{ reading, shown: changedPage, page }]
        : [],
    );
    if (changedReadings.length === 0) return;
    await this.#rows.setLastPages(changedReadings.map(({ page }) => page));
    for (const { reading, shown: changedPage, page } of changedReadings) {
      reading.savedRow = page;
      reading.savedUrl = changedPage.url;
    }
  }
}

/** Whether the page is due to be read. Each call counts as one of the reads after a new address. */
function takeRead(reading: PageReading): boolean {
  const page = reading.live.browser.changedPage;
  if (page === undefined) return false;
  if (page !== reading.page) {
    reading.page = page;
    reading.readsLeft = TITLE_READS_MAX;
  }
  reading.readsLeft -= 1;
  return reading.readsLeft >= 0;
}

/**
 * Reads the title and returns the redacted row, without NUL characters, which PostgreSQL cannot store in a text column.
 */
async function readLastPage({ live, hiddenUrl }: PageReading, page: ChangedPage): Promise<LastPageRow> {
  const { id, browser, secrets, cover } = live;
  const isHidden = cover !== undefined || page.url === hiddenUrl;
  const readTitle = (): Promise<string | undefined> =>
    withTimeout(TITLE_TIMEOUT_MS, 'the title of the last page', () => browser.titleOf(page)).catch(() => undefined);
  // The title and the address of a page may contain text that a person typed.
  const title = isHidden ? undefined : await readTitle();
  const shownTitle = title === undefined || isAddress(title, page.url) ? '' : secrets.clean(title);
  const pageTitle = boundedText(shownTitle, TITLE_CHARACTERS_MAX);
  return {
    id,
    pageUrl: redactUrl(secrets.clean(isHidden ? (page.url.split(/[?#]/, 1)[0] ?? '') : page.url)).replaceAll('\0', ''),
    pageTitle: redactText(pageTitle).replaceAll('\0', ''),
  };
}

/** Whether the title is only the address. If a page has no title, Chromium reports its address without the scheme. */
function isAddress(title: string, url: string): boolean {
  const host = URL.parse(url)?.host;
  return host !== undefined && (title === host || title.startsWith(`${host}/`));
}
