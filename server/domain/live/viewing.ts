// The live view's observation of one session: its pages, their state, and the newest screencast frame of each. Starts
// with the first viewer and ends with the last, so that a session without viewers has no overhead.
import type { TabState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { LiveSession } from '../sessions/live.ts';
import { Favicons } from './favicons.ts';
import { ViewedPage } from './viewed-page.ts';

/** Titles and icons are read again this long after a change, so that several changes cause one read. */
const TABS_READ_DELAY_MS = 150;

export interface LiveFrame {
  readonly jpeg: Buffer;
  /** The same picture without masks: only for the person who controls the page. */
  readonly unmasked: Buffer;
  /** Whether the whole picture is masked for everyone except the person who has control in a hand-off. */
  readonly isCovered: boolean;
  /**
   * True if the page is not recorded. It is then unknown what must be masked, so the whole picture is masked for
   * everyone except the person who has control.
   */
  readonly isMaskUnknown: boolean;
  /** Size of the page in the picture, in CSS pixels. */
  readonly width: number;
  readonly height: number;
}

export interface OpenedPage {
  readonly page: string;
  /** The page whose link or script opened this page. Absent if it was opened over CDP. */
  readonly openerId: string | undefined;
}

/**
 * Delivers screencast frames of a page: the newest at once, then one whenever the page changes. Shares the recorder's
 * capture if there is one.
 */
export type WatchPage = (
  session: SessionId,
  target: ObservedTarget,
  onFrame: (liveFrame: LiveFrame) => void,
) => Closeable;

export class Viewing implements Closeable {
  readonly #liveSession: LiveSession;
  readonly #clock: Clock;
  readonly #watchPage: WatchPage;
  readonly #pages = new Map<string, { readonly target: ObservedTarget; readonly page: ViewedPage }>();
  readonly #iframeTargets = new Set<ObservedTarget>();
  readonly #listeners = new Set<(pageId: string | undefined) => void>();
  readonly #pageOpenedListeners = new Set<(openedPage: OpenedPage) => void>();
  readonly #closeController = new AbortController();
  readonly #icons = new Favicons(() => this.#notify(undefined));
  #observing: Promise<Closeable> | undefined;
  #tabInfos: ReadonlyArray<Omit<TabState, 'visible'>> = [];
  #pendingTabsRead: Promise<void> | undefined;

  constructor(liveSession: LiveSession, watchPage: WatchPage, clock: Clock) {
    this.#liveSession = liveSession;
    this.#watchPage = watchPage;
    this.#clock = clock;
  }

  async open(): Promise<void> {
    this.#observing ??= this.#observe();
    await this.#observing;
    await this.#readTabs();
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the last viewer has left'));
    for (const { page } of this.#pages.values()) page.close();
    this.#pages.clear();
    this.#listeners.clear();
    this.#pageOpenedListeners.clear();
    const activeObservation = await this.#observing?.catch(() => undefined);
    await activeObservation?.close();
  }

  page(id: string): ViewedPage | undefined {
    return this.#pages.get(id)?.page;
  }

  get tabs(): readonly TabState[] {
    return this.#tabInfos.flatMap(info => {
      const page = this.page(info.page);
      return page ? [{ ...info, visible: page.state.visible }] : [];
    });
  }

  /** The icon of a tab as a data URL, if it has been loaded. */
  iconOf({ page, faviconUrl }: TabState): string | undefined {
    const target = this.#pages.get(page)?.target;
    return target && this.#icons.of(target, faviconUrl);
  }

  /** Calls the listener with the page that changed, or with undefined if the list of tabs changed. */
  onChange(listener: (page: string | undefined) => void): Closeable {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /** Calls the listener with each page that opens from now on. */
  onOpened(listener: (openedPage: OpenedPage) => void): Closeable {
    this.#pageOpenedListeners.add(listener);
    return { close: () => void this.#pageOpenedListeners.delete(listener) };
  }

  watch(id: string, onFrame: (liveFrame: LiveFrame) => void): Closeable | undefined {
    const viewedEntry = this.#pages.get(id);
    return viewedEntry && this.#watchPage(this.#liveSession.id, viewedEntry.target, onFrame);
  }

  /** Whether the browser has the maximum number of pages. */
  get isTabLimitReached(): boolean {
    return this.#liveSession.browser.isPageLimitReached;
  }

  /** Opens an empty page. Undefined if it could not be opened. */
  newTab(): Promise<string | undefined> {
    return this.#liveSession.browser.newPage().catch(() => undefined);
  }

  #observe(): Promise<Closeable> {
    const pendingObservation = this.#liveSession.browser.observe({ target: target => this.#addTarget(target) });
    // The next viewer starts a new observation.
    pendingObservation.catch(() => {
      this.#observing = undefined;
    });
    return pendingObservation;
  }

  #addTarget(target: ObservedTarget): void {
    if (target.kind === 'iframe') {
      this.#iframeTargets.add(target);
      target.whenGone(() => this.#iframeTargets.delete(target));
    }
    if (target.kind !== 'page') return;
    const page = new ViewedPage({
      target,
      remoteFrames: () => this.#remoteFrames(target),
      isCovered: () => this.#liveSession.cover !== undefined,
      onChanged: () => this.#notify(target.id),
      onTyping: (method, params) => this.#liveSession.rememberTyped?.(method, target.id, params),
    });
    this.#pages.set(target.id, { target, page });
    target.on(method => {
      if (/^Page\.(frameNavigated|frameStoppedLoading|navigatedWithinDocument|domContentEventFired)$/.test(method))
        void this.#readTabs();
    });
    target.whenGone(() => {
      page.close();
      // If this observation failed, a later observation may have registered the page again.
      if (this.#pages.get(target.id)?.target === target) this.#pages.delete(target.id);
      void this.#readTabs();
    });
    void this.#readTabs();
    if (!target.isNew) return;
    for (const listener of [...this.#pageOpenedListeners]) listener({ page: target.id, openerId: target.openerId });
  }

  #remoteFrames(page: ObservedTarget): ReadonlyMap<string, ObservedTarget> {
    const pageOf = (target: ObservedTarget): ObservedTarget => {
      let top = target;
      while (top.parent) top = top.parent;
      return top;
    };
    return new Map([...this.#iframeTargets].filter(frame => pageOf(frame) === page).map(frame => [frame.id, frame]));
  }

  /** Reads the tabs after a delay. Only one read is pending at a time; it includes changes during the delay. */
  #readTabs(): Promise<void> {
    this.#pendingTabsRead ??= this.#clock
      .sleep(this.#tabInfos.length === 0 ? 0 : TABS_READ_DELAY_MS, this.#closeController.signal)
      .then(async () => {
        this.#pendingTabsRead = undefined;
        return this.#liveSession.secrets.cleanAll(await this.#liveSession.browser.listPages());
      })
      .then(
        pages => {
          this.#tabInfos = pages.map(({ id, ...info }) => ({ page: id, ...info }));
          this.#notify(undefined);
        },
        () => {}, // The browser is shutting down.
      );
    return this.#pendingTabsRead;
  }

  #notify(page: string | undefined): void {
    for (const listener of [...this.#listeners]) listener(page);
  }
}
