// The server's own channel to one browser: commands with answers, and what it must know of the targets: which pages
// there are, and whether their renderer answers. It never enables anything on a page.
import { isObject, type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { WaitExpired, within } from '../../kit/wait.ts';
import { Asker, COMMAND_MS } from './asker.ts';
import { type DownloadListener, tellOfDownload } from './download-events.ts';
import { type Incoming, SERVER_ERROR } from './messages.ts';
import { type Channel, type ChannelOwner, type Mux, type OnAnswer, ProtocolFailure } from './mux.ts';

/** A page that is stuck is asked again at most this long; then it counts as gone until the next client asks. */
const STUCK_PAGE_MS = 6 * 3600_000;
/** What is told beyond them is found in the folder of the downloads. */
const UNTOLD_MAX = 1000;
const FAVICON_MS = 500;
const FAVICON_CHARACTERS_MAX = 2048;
/** The last one named wins, as in a tab; without one the well-known place, where the document came from the web. */
const FAVICON = `(() => {
  const named = [...document.querySelectorAll('link[rel~="icon"]')].at(-1)?.href;
  return named || (/^https?:$/.test(location.protocol) ? new URL('/favicon.ico', location.href).href : '');
})()`;
const only = (type: string): readonly JsonObject[] => [{ type }, { exclude: true }];

export interface Page {
  readonly targetId: string;
  readonly contextId: string | undefined;
  readonly channel: Channel;
}

export interface Geolocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly accuracy?: number;
}

export class Control implements ChannelOwner {
  readonly #mux: Mux;
  readonly #asker: Asker;
  readonly #pages = new Map<string, Page>();
  readonly #probes = new SingleFlight<string, boolean>();
  /** By the channel of a tab that is being asked: its pages so far. */
  readonly #shownIn = new Map<string, Set<string>>();
  readonly #firstPage = Promise.withResolvers<Page>();
  #root: Channel | undefined;
  #downloads: DownloadListener | undefined;
  /** Of a browser that ran before we came: it may download something before anybody listens. */
  readonly #untold: Incoming[] = [];
  #geolocation: Geolocation | undefined;

  constructor(mux: Mux) {
    this.#mux = mux;
    this.#asker = new Asker(mux);
  }

  /** `firstAnswerMs`: for a browser that has only just been started. */
  async open(beforeUse: (channelId: string) => void, firstAnswerMs?: number): Promise<void> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse, firstAnswerMs);
    // Pages are attached to one by one as they are told of. Auto-attach would make each `window.open` wait for us, and
    // letting it go on would let it go on for clients too, before they have put their scripts into the popup (measured).
    await this.send('Target.setDiscoverTargets', { discover: true });
  }

  /** These ears hear of downloads, also of those that began before they were there. */
  tellOfDownloads(listener: DownloadListener): void {
    this.#downloads = listener;
    for (const { method, params } of this.#untold.splice(0)) tellOfDownload(method, params, listener);
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  get pages(): readonly Page[] {
    return [...this.#pages.values()];
  }

  firstPage(): Promise<Page> {
    return this.#firstPage.promise;
  }

  /**
   * Every page, also those to come, is at this place, and may know it without asking anybody. New pages are not held for
   * it: letting one go on would let it go on for clients too. They ask their browser later than this is set.
   */
  async locate(geolocation: Geolocation): Promise<void> {
    this.#geolocation = { accuracy: 1, ...geolocation };
    await this.send('Browser.setPermission', { permission: { name: 'geolocation' }, setting: 'granted' });
    for (const page of this.pages) await this.#place(page.channel);
  }

  /** The same in a browser context that a client made. */
  async locateContext(contextId: string): Promise<void> {
    if (!this.#geolocation) return;
    const granted = { permission: { name: 'geolocation' }, setting: 'granted', browserContextId: contextId };
    await this.send('Browser.setPermission', granted);
  }

  /** A command on the browser, or on one channel of ours. */
  send(method: string, params: JsonObject = {}, channel = this.#root, ms = COMMAND_MS): Promise<JsonObject> {
    if (!channel) throw new Error('the control channel is not open');
    return this.#asker.send(channel, method, params, ms);
  }

  /** Waits until the page's renderer has run a no-op; false when it is gone or stays stuck. Callers share one question. */
  responds(page: Page): Promise<boolean> {
    return this.#probes.run(page.targetId, async () => {
      for (;;) {
        try {
          await this.send('Runtime.evaluate', { expression: '0' }, page.channel, STUCK_PAGE_MS);
          return true;
        } catch (error) {
          // A crashed page answers again once it is reloaded; one that is gone never does.
          if (!(error instanceof ProtocolFailure) || !this.#pages.has(page.targetId)) return false;
          if (error.code !== SERVER_ERROR) return true;
        }
      }
    });
  }

  /** The pages whose renderer did not answer within `ms`. */
  async unresponsivePages(ms: number): Promise<readonly Page[]> {
    const stuck: Page[] = [];
    const ask = async (page: Page): Promise<void> => {
      try {
        await within(ms, `page ${page.targetId} to answer`, () => this.responds(page));
      } catch (error) {
        if (!(error instanceof WaitExpired)) throw error;
        stuck.push(page);
      }
    };
    await Promise.all(this.pages.map(ask));
    return stuck.filter(page => this.#pages.has(page.targetId));
  }

  /** Address and title of every page, in the order in which they were met. */
  async pageInfos(): Promise<ReadonlyArray<{ id: string; url: string; title: string }>> {
    const { targetInfos } = await this.send('Target.getTargets', { filter: only('page') });
    const infos = (Array.isArray(targetInfos) ? targetInfos : []).filter(isObject);
    return this.pages.flatMap(({ targetId: id }) => {
      const info = infos.find(one => one.targetId === id);
      return info ? [{ id, url: textAt(info, 'url') ?? '', title: textAt(info, 'title') ?? '' }] : [];
    });
  }

  /** Asked in the page itself, where a hostile one may answer anything: only a web address comes through. */
  async faviconOf(targetId: string): Promise<string> {
    const page = this.#pages.get(targetId);
    if (!page) return '';
    const ask = { expression: FAVICON, returnByValue: true, timeout: FAVICON_MS };
    const answer = await this.send('Runtime.evaluate', ask, page.channel, FAVICON_MS).catch(() => undefined);
    const found = textAt(objectAt(answer, 'result'), 'value') ?? '';
    return found.length <= FAVICON_CHARACTERS_MAX && /^https?:\/\//.test(found) ? found : '';
  }

  /** The tabs that these pages are shown in: targets of their own, which Puppeteer attaches to first. */
  async tabsOf(pages: readonly Page[]): Promise<ReadonlyMap<Page, string>> {
    if (pages.length === 0) return new Map();
    const { targetInfos } = await this.send('Target.getTargets', { filter: only('tab') });
    const tabIds = (Array.isArray(targetInfos) ? targetInfos : []).flatMap(info => textAt(info, 'targetId') ?? []);
    const found = new Map<Page, string>();
    for (const tabId of tabIds) {
      // The tab may be gone by now.
      const shown = await this.#pagesIn(tabId).catch(() => new Set<string>());
      for (const page of pages) if (shown.has(page.targetId)) found.set(page, tabId);
    }
    return found;
  }

  incoming(channel: Channel, message: Buffer): void {
    const event = this.#asker.event(channel, message);
    if (event) this.#event(channel, event);
  }

  fail(_channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void {
    void onAnswer?.({ id, error: { code: SERVER_ERROR, message } });
  }

  rest(): void {}

  #event(channel: Channel, event: Incoming): void {
    const info = objectAt(event.params, 'targetInfo');
    const targetId = textAt(info, 'targetId') ?? textAt(event.params, 'targetId');
    switch (event.method) {
      case 'Target.targetCreated':
        return this.#met(info);
      case 'Target.attachedToTarget':
        return this.#attached(channel, textAt(event.params, 'sessionId'), info);
      case 'Target.detachedFromTarget':
        return this.#detached(textAt(event.params, 'sessionId'));
      case 'Browser.downloadWillBegin':
      case 'Browser.downloadProgress':
        if (channel === this.#root) this.#download(event);
        return;
      case 'Target.targetCrashed':
        if (targetId) this.#mux.targetCrashed(targetId);
        return;
    }
  }

  #download(event: Incoming): void {
    if (this.#downloads) tellOfDownload(event.method, event.params, this.#downloads);
    else if (this.#untold.length < UNTOLD_MAX) this.#untold.push(event);
  }

  #met(info: JsonObject | undefined): void {
    if (textAt(info, 'type') !== 'page') return;
    // It may be gone again before this is answered.
    this.send('Target.attachToTarget', { targetId: textAt(info, 'targetId') ?? '', flatten: true }).catch(() => {});
  }

  #attached(parent: Channel, id: string | undefined, info: JsonObject | undefined): void {
    const targetId = textAt(info, 'targetId');
    if (!id || !targetId) return;
    const channel = this.#mux.open(id, this, parent, targetId);
    this.#shownIn.get(parent.id)?.add(targetId);
    if (parent !== this.#root || textAt(info, 'type') !== 'page') return;
    const page = { targetId, contextId: textAt(info, 'browserContextId'), channel };
    this.#pages.set(targetId, page);
    this.#firstPage.resolve(page);
    void this.#place(channel);
  }

  async #place(channel: Channel): Promise<void> {
    if (!this.#geolocation) return;
    await this.send('Emulation.setGeolocationOverride', { ...this.#geolocation }, channel).catch(() => {});
  }

  /** Chromium tells what a tab shows only by attaching to it. */
  async #pagesIn(tabId: string): Promise<ReadonlySet<string>> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId: tabId, flatten: true });
    const channel = typeof sessionId === 'string' ? this.#mux.find(sessionId) : undefined;
    if (!channel) return new Set();
    const shown = new Set<string>();
    this.#shownIn.set(channel.id, shown);
    try {
      const attach = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter: only('page') };
      await this.send('Target.setAutoAttach', attach, channel);
      return shown;
    } finally {
      this.#shownIn.delete(channel.id);
      await this.send('Target.detachFromTarget', { sessionId: channel.id });
      for (const page of shown) this.#mux.sayOverridesAgain(page, this);
    }
  }

  #detached(id: string | undefined): void {
    const channel = id === undefined ? undefined : this.#mux.find(id);
    if (!channel) return;
    if (channel.targetId && this.#pages.get(channel.targetId)?.channel === channel)
      this.#pages.delete(channel.targetId);
    this.#mux.drop(channel);
  }
}
