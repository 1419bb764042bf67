// One session while somebody looks at it: its pages with their states, and the newest picture of each. It begins with the
// first viewer and ends with the last, so a session that nobody looks at pays nothing.
import type { TabState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { LiveSession } from '../sessions/live.ts';
import { Favicons } from './favicons.ts';
import { ViewedPage } from './viewed-page.ts';

/** Titles and icons are read anew this long after something about a page has changed. */
const TABS_SETTLE_MS = 150;

export interface Picture {
  readonly jpeg: Buffer;
  /** CSS pixels of the page that it shows. */
  readonly width: number;
  readonly height: number;
}

/** Pictures of a page as it changes, the newest at once; from the recorder where it looks already. */
export type WatchPage = (session: SessionId, target: ObservedTarget, seen: (picture: Picture) => void) => Closeable;

export class Viewing implements Closeable {
  readonly #live: LiveSession;
  readonly #clock: Clock;
  readonly #watchPage: WatchPage;
  readonly #pages = new Map<string, { readonly target: ObservedTarget; readonly page: ViewedPage }>();
  readonly #frames = new Set<ObservedTarget>();
  readonly #listeners = new Set<(page: string | undefined) => void>();
  readonly #closing = new AbortController();
  readonly #icons = new Favicons(() => this.#tell(undefined));
  #observing: Promise<Closeable> | undefined;
  #infos: ReadonlyArray<Omit<TabState, 'visible'>> = [];
  #reading: Promise<void> | undefined;

  constructor(live: LiveSession, watchPage: WatchPage, clock: Clock) {
    this.#live = live;
    this.#watchPage = watchPage;
    this.#clock = clock;
  }

  async open(): Promise<void> {
    this.#observing ??= this.#live.browser.observe({ target: target => this.#met(target) });
    await this.#observing;
    await this.#readTabs();
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('nobody looks any more'));
    for (const { page } of this.#pages.values()) page.close();
    this.#pages.clear();
    this.#listeners.clear();
    const observing = await this.#observing?.catch(() => undefined);
    await observing?.close();
  }

  page(id: string): ViewedPage | undefined {
    return this.#pages.get(id)?.page;
  }

  get tabs(): readonly TabState[] {
    return this.#infos.flatMap(info => {
      const page = this.page(info.page);
      return page ? [{ ...info, visible: page.state.visible }] : [];
    });
  }

  /** The icon of a tab as a data URL, as soon as it is known. */
  iconOf({ page, faviconUrl }: TabState): string | undefined {
    const target = this.#pages.get(page)?.target;
    return target && this.#icons.of(target, faviconUrl);
  }

  /** Called with the page whose state has changed, or with undefined when it is the tabs. */
  onChange(listener: (page: string | undefined) => void): Closeable {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  watch(id: string, seen: (picture: Picture) => void): Closeable | undefined {
    const found = this.#pages.get(id);
    return found && this.#watchPage(this.#live.id, found.target, seen);
  }

  newTab(): void {
    this.#live.browser.newPage().catch(() => {});
  }

  #met(target: ObservedTarget): void {
    if (target.kind === 'iframe') {
      this.#frames.add(target);
      target.whenGone(() => this.#frames.delete(target));
    }
    if (target.kind !== 'page') return;
    const page = new ViewedPage(
      target,
      () => this.#apart(target),
      () => this.#tell(target.id),
    );
    this.#pages.set(target.id, { target, page });
    target.on(method => {
      if (/^Page\.(frameNavigated|frameStoppedLoading|navigatedWithinDocument|domContentEventFired)$/.test(method))
        void this.#readTabs();
    });
    target.whenGone(() => {
      page.close();
      this.#pages.delete(target.id);
      void this.#readTabs();
    });
    void this.#readTabs();
  }

  #apart(page: ObservedTarget): ReadonlyMap<string, ObservedTarget> {
    const pageOf = (target: ObservedTarget): ObservedTarget => {
      let top = target;
      while (top.parent) top = top.parent;
      return top;
    };
    return new Map([...this.#frames].filter(frame => pageOf(frame) === page).map(frame => [frame.id, frame]));
  }

  /** One reading at a time; what changes while it waits is in it. */
  #readTabs(): Promise<void> {
    this.#reading ??= this.#clock
      .sleep(this.#infos.length === 0 ? 0 : TABS_SETTLE_MS, this.#closing.signal)
      .then(() => {
        this.#reading = undefined;
        return this.#live.browser.listPages();
      })
      .then(
        pages => {
          this.#infos = pages.map(({ id, ...info }) => ({ page: id, ...info }));
          this.#tell(undefined);
        },
        () => {}, // the browser is going
      );
    return this.#reading;
  }

  #tell(page: string | undefined): void {
    for (const listener of [...this.#listeners]) listener(page);
  }
}
