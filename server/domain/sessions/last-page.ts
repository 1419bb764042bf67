// The last page that each session showed: title and redacted URL, for the list of sessions and its search. The browser
// reports each new address, but not new titles. Titles are therefore read a few times after each new address, and when
// the session ends.
import type { ChangedPage } from '../../engines/browser/control.ts';
import type { LastPageRow, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { boundedText } from '../../kit/foreign.ts';
import type { SessionId } from '../../kit/ids.ts';
import { withTimeout } from '../../kit/wait.ts';
import { REDACTED, redactText, redactUrl } from '../logs/redact.ts';
import type { Attendance } from './attendance.ts';
import type { LiveSession } from './live.ts';
import type { Watcher } from './watchers.ts';

/** How often changed pages are saved. A process that is killed loses the changes since the last save. */
export const LAST_PAGE_SAVE_INTERVAL_MS = 2_000;
/** How many times a title is read after a new address. Most pages set it within the first seconds. */
const TITLE_READS_MAX = 3;
const TITLE_TIMEOUT_MS = 1_000;
const TITLE_CHARACTERS_MAX = 300;
/** Only this much of an address or a title is searched for secrets and typed text, and stored. */
const SCANNED_CHARACTERS_MAX = 8_192;
const HIDDEN_URLS_MAX = 20;

interface WatchedSession extends Pick<LiveSession, 'secrets' | 'redactTyped' | 'cover' | 'onCover'> {
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
  /**
   * Addresses that may contain text that the server does not know, because it was typed in a hidden hand-off or before an
   * adoption. The newest ones.
   */
  readonly hiddenUrls: Set<string>;
  /** The address at the adoption of the session, if the stored row shows this page, and until the page changes. */
  adoptedUrl?: string;
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
  async attend(liveSession: WatchedSession, row: Pick<SessionRow, 'status' | 'pageUrl'>): Promise<Attendance> {
    const reading: PageReading = { live: liveSession, readsLeft: 0, hiddenUrls: new Set() };
    if (row.status !== 'PENDING') noteAdoptedPage(reading, row.pageUrl);
    this.#readings.set(liveSession.id, reading);
    let wasHidden = false;
    const coverSubscription = liveSession.onCover(cover => {
      if (wasHidden && !cover) hideUrl(reading, liveSession.browser.changedPage?.url ?? '');
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
      readings.filter(hasLeftAdoptedPage).map(async reading => {
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
 * The text that was typed before an adoption is not known. If the stored row shows the page of the adopted browser, the
 * row is kept. Otherwise, only a part of the address is stored.
 */
function noteAdoptedPage(reading: PageReading, storedUrl: string | undefined): void {
  const { browser, secrets } = reading.live;
  const url = browser.changedPage?.url;
  if (url === undefined) return;
  if (storedUrl !== undefined && isRedactedFrom(storedUrl, storableUrl(secrets.clean(bounded(url)))))
    reading.adoptedUrl = url;
  else hideUrl(reading, url);
}

/** Whether the text is the other one with `[redacted]` in place of some of its parts. */
function isRedactedFrom(redactedText: string, text: string): boolean {
  const [head = '', ...parts] = redactedText.split(REDACTED);
  const tail = parts.pop();
  if (tail === undefined) return redactedText === text;
  if (!text.startsWith(head)) return false;
  let at = head.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at + tail.length <= text.length && text.endsWith(tail);
}

/** If the session has left the page that it showed at its adoption, the address of that page is hidden from now on. */
function hasLeftAdoptedPage(reading: PageReading): boolean {
  const { adoptedUrl, live } = reading;
  if (adoptedUrl === undefined) return true;
  if (live.browser.changedPage?.url === adoptedUrl) return false;
  delete reading.adoptedUrl;
  hideUrl(reading, adoptedUrl);
  return true;
}

function hideUrl({ hiddenUrls }: PageReading, url: string): void {
  hiddenUrls.delete(url);
  hiddenUrls.add(url);
  const [oldest] = hiddenUrls;
  if (hiddenUrls.size > HIDDEN_URLS_MAX && oldest !== undefined) hiddenUrls.delete(oldest);
}

const bounded = (text: string): string => boundedText(text, SCANNED_CHARACTERS_MAX);

/** Without NUL characters, which PostgreSQL cannot store in a text column. */
const storableUrl = (url: string): string => redactUrl(url).replaceAll('\0', '');

/** Reads the title and returns the redacted row. */
async function readLastPage({ live, hiddenUrls }: PageReading, page: ChangedPage): Promise<LastPageRow> {
  const { id, browser, secrets } = live;
  // The title and the address of a page may contain text that was typed. The server does not know what clients type in a
  // session without a log.
  const mayContainUnknownText = (): boolean =>
    live.redactTyped === undefined || live.cover !== undefined || hiddenUrls.has(page.url);
  const readTitle = (): Promise<string | undefined> =>
    withTimeout(TITLE_TIMEOUT_MS, 'the title of the last page', () => browser.titleOf(page)).catch(() => undefined);
  const title = mayContainUnknownText() ? undefined : await readTitle();
  const isHidden = mayContainUnknownText(); // Checked again, because a hand-off may have begun meanwhile.
  const shownTitle = isHidden || title === undefined || isAddress(title, page.url) ? '' : title;
  const shownUrl = isHidden ? (page.url.split(/[?#]/, 1)[0] ?? '') : page.url;
  const clean = (text: string): string => {
    const cleanText = secrets.clean(bounded(text));
    return live.redactTyped?.(cleanText) ?? cleanText;
  };
  return {
    id,
    pageUrl: storableUrl(clean(shownUrl)),
    pageTitle: redactText(boundedText(clean(shownTitle), TITLE_CHARACTERS_MAX)).replaceAll('\0', ''),
  };
}

/** Whether the title is only the address. If a page has no title, Chromium reports its address without the scheme. */
function isAddress(title: string, url: string): boolean {
  const host = URL.parse(url)?.host;
  return host !== undefined && (title === host || title.startsWith(`${host}/`));
}
