// The server's own channel to one browser. It sends commands, and tracks which pages exist and whether their renderers
// respond. It never enables a domain on a page.
import { isObject, type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import { COMMAND_TIMEOUT_MS, CommandSender } from './command-sender.ts';
import { type DownloadListener, dispatchDownloadEvent } from './download-events.ts';
import { type IncomingMessage, SERVER_ERROR } from './messages.ts';
import { type Channel, type ChannelOwner, type Mux, type OnResponse, ProtocolFailure } from './mux.ts';
import { PageLimit } from './page-limit.ts';

/** The maximum wait for an unresponsive page. After that, the page counts as closed until the next client connects. */
const UNRESPONSIVE_PAGE_TIMEOUT_MS = 6 * 3600_000;
/** Events beyond this number are dropped. The downloaded files are still found in the downloads folder. */
const BUFFERED_DOWNLOAD_EVENTS_MAX = 1000;
const WEB_URL_PATTERN = /^https?:/;
const FAVICON_TIMEOUT_MS = 500;
const FAVICON_CHARACTERS_MAX = 2048;
const FAVICON_RESPONSE_BYTES_MAX = 64 * 1024;
/**
 * Uses the last icon link, as a tab does. Without a link, uses `/favicon.ico` if the document has an http or https URL.
 */
const FAVICON_SCRIPT = `(() => {
  const named = [...document.querySelectorAll('link[rel~="icon"]')].at(-1)?.href;
  return named || (/^https?:$/.test(location.protocol) ? new URL('/favicon.ico', location.href).href : '');
})()`;
const typeFilter = (type: string): readonly JsonObject[] => [{ type }, { exclude: true }];

export interface Page {
  readonly targetId: string;
  readonly contextId: string | undefined;
  readonly channel: Channel;
}

/** A page that was opened or whose address changed. */
export interface ChangedPage {
  readonly targetId: string;
  /** Untrusted and unbounded. */
  readonly url: string;
}

export interface Geolocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly accuracy?: number;
}

export class Control implements ChannelOwner {
  readonly #mux: Mux;
  readonly #commandSender: CommandSender;
  readonly #pages = new Map<string, Page>();
  /** A page that it refuses is closed as soon as it is created. */
  readonly pageLimit = new PageLimit();
  readonly #probes = new SingleFlight<string, boolean>();
  /** Ids of the pages found so far, by the channel of the tab whose pages are being listed. */
  readonly #pageIdsByTabChannel = new Map<string, Set<string>>();
  readonly #firstPage = Promise.withResolvers<Page>();
  #root: Channel | undefined;
  #downloadListener: DownloadListener | undefined;
  /** Download events that arrived before a listener was set. An adopted browser may already be downloading. */
  readonly #bufferedDownloadEvents: IncomingMessage[] = [];
  #geolocation: Geolocation | undefined;
  #changedPage: ChangedPage | undefined;

  constructor(mux: Mux) {
    this.#mux = mux;
    this.#commandSender = new CommandSender(mux);
  }

  /**
   * Opens the channel. `firstResponseMs` is the time limit for the first response, which is longer for a browser that
   * was just started.
   */
  async open(beforeUse: (channelId: string) => void, firstResponseMs?: number): Promise<void> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse, firstResponseMs);
    // Pages are attached one by one as they are discovered. With auto-attach, each `window.open` would wait for the
    // server. Resuming the popup would also resume it for clients, before they have added their scripts to it
    // (measured).
    await this.send('Target.setDiscoverTargets', { discover: true });
    this.pageLimit.activate();
  }

  /** Reports downloads to the listener, including those that began before it was set. */
  onDownloads(listener: DownloadListener): void {
    this.#downloadListener = listener;
    for (const { method, params } of this.#bufferedDownloadEvents.splice(0))
      dispatchDownloadEvent(method, params, listener);
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  get pages(): readonly Page[] {
    return [...this.#pages.values()];
  }

  /** Among the pages with a web address, the page whose address changed last. Each change creates a new object. */
  get changedPage(): ChangedPage | undefined {
    return this.#changedPage;
  }

  firstPage(): Promise<Page> {
    return this.#firstPage.promise;
  }

  /**
   * Sets the geolocation of every existing and future page, and grants the permission to read it. New pages are not
   * paused, because resuming them would also resume them for clients. Pausing is not necessary, because a page requests
   * its location only some time after it has opened.
   */
  async setGeolocation(geolocation: Geolocation): Promise<void> {
    this.#geolocation = { accuracy: 1, ...geolocation };
    await this.send('Browser.setPermission', { permission: { name: 'geolocation' }, setting: 'granted' });
    await Promise.all(this.pages.map(page => this.#overrideGeolocation(page.channel)));
  }

  /** Grants the geolocation permission in a browser context that a client created. */
  async grantGeolocation(contextId: string): Promise<void> {
    if (!this.#geolocation) return;
    const permissionParams = { permission: { name: 'geolocation' }, setting: 'granted', browserContextId: contextId };
    await this.send('Browser.setPermission', permissionParams);
  }

  /** Sends a command on the given channel, by default on the channel to the browser itself. */
  send(
    method: string,
    params: JsonObject = {},
    channel = this.#root,
    ms = COMMAND_TIMEOUT_MS,
    maxBytes?: number,
  ): Promise<JsonObject> {
    if (!channel) throw new Error('the control channel is not open');
    return this.#commandSender.send(channel, method, params, ms, maxBytes);
  }

  /**
   * Waits until the page's renderer has run a no-op. Resolves to false if the page is closed or remains unresponsive.
   * Concurrent callers share one probe.
   */
  waitForResponse(page: Page): Promise<boolean> {
    return this.#probes.run(page.targetId, async () => {
      for (;;) {
        try {
          await this.send('Runtime.evaluate', { expression: '0' }, page.channel, UNRESPONSIVE_PAGE_TIMEOUT_MS);
          return true;
        } catch (error) {
          // A crashed page responds again once it has been reloaded. A closed page never does.
          if (!(error instanceof ProtocolFailure) || !this.#pages.has(page.targetId)) return false;
          if (error.code !== SERVER_ERROR) return true;
        }
      }
    });
  }

  /** Returns the pages whose renderers did not respond within `ms` milliseconds. */
  async unresponsivePages(ms: number): Promise<readonly Page[]> {
    const unresponsivePages: Page[] = [];
    const probePage = async (page: Page): Promise<void> => {
      try {
        await withTimeout(ms, `page ${page.targetId} to answer`, () => this.waitForResponse(page));
      } catch (error) {
        if (!(error instanceof WaitExpired)) throw error;
        unresponsivePages.push(page);
      }
    };
    await Promise.all(this.pages.map(probePage));
    return unresponsivePages.filter(page => this.#pages.has(page.targetId));
  }

  /** Returns the URL and title of every page, in the order in which the pages were created. */
  async pageInfos(): Promise<ReadonlyArray<{ id: string; url: string; title: string }>> {
    const { targetInfos } = await this.send('Target.getTargets', { filter: typeFilter('page') });
    const infos = (Array.isArray(targetInfos) ? targetInfos : []).filter(isObject);
    return this.pages.flatMap(({ targetId: id }) => {
      const info = infos.find(one => one.targetId === id);
      return info ? [{ id, url: textAt(info, 'url') ?? '', title: textAt(info, 'title') ?? '' }] : [];
    });
  }

  /**
   * Returns the icon URL of a page and whether the page responds. The script runs in the page, which may be hostile and
   * return anything. Only http and https URLs are accepted.
   */
  async inspectPage(targetId: string): Promise<{ readonly faviconUrl: string; readonly isResponsive: boolean }> {
    const page = this.#pages.get(targetId);
    if (!page) return { faviconUrl: '', isResponsive: false };
    const evaluateParams = { expression: FAVICON_SCRIPT, returnByValue: true, timeout: FAVICON_TIMEOUT_MS };
    const evaluation = this.send(
      'Runtime.evaluate',
      evaluateParams,
      page.channel,
      FAVICON_TIMEOUT_MS,
      FAVICON_RESPONSE_BYTES_MAX,
    );
    const [evaluateResponse, error] = await evaluation.then(
      answer => [answer] as const,
      (error: unknown) => [undefined, error] as const,
    );
    const url = textAt(objectAt(evaluateResponse, 'result'), 'value') ?? '';
    const isWebUrl = url.length <= FAVICON_CHARACTERS_MAX && /^https?:\/\//.test(url);
    return { faviconUrl: isWebUrl ? url : '', isResponsive: !(error instanceof WaitExpired) };
  }

  /** Returns the tab of each page. Tabs are targets too, and Puppeteer attaches to them first. */
  async tabsOf(pages: readonly Page[]): Promise<ReadonlyMap<Page, string>> {
    if (pages.length === 0) return new Map();
    const { targetInfos } = await this.send('Target.getTargets', { filter: typeFilter('tab') });
    const tabIds = (Array.isArray(targetInfos) ? targetInfos : []).flatMap(info => textAt(info, 'targetId') ?? []);
    const tabIdByPage = new Map<Page, string>();
    for (const tabId of tabIds) {
      // The tab may have been closed by now.
      const pageIdsInTab = await this.#pagesIn(tabId).catch(() => new Set<string>());
      for (const page of pages) if (pageIdsInTab.has(page.targetId)) tabIdByPage.set(page, tabId);
    }
    return tabIdByPage;
  }

  handleMessage(channel: Channel, message: Buffer): void {
    const event = this.#commandSender.receive(channel, message);
    if (event) this.#handleEvent(channel, event);
  }

  fail(_channel: Channel, id: number, message: string, onResponse: OnResponse | undefined): void {
    void onResponse?.({ id, error: { code: SERVER_ERROR, message } });
  }

  batchEnd(): void {}

  #handleEvent(channel: Channel, event: IncomingMessage): void {
    const info = objectAt(event.params, 'targetInfo');
    const targetId = textAt(info, 'targetId') ?? textAt(event.params, 'targetId');
    switch (event.method) {
      case 'Target.targetCreated':
        this.#onTargetCreated(info);
        return this.#onPageChanged(info);
      case 'Target.targetDestroyed':
        if (targetId) this.pageLimit.forget(targetId);
        return;
      case 'Target.targetInfoChanged':
        return this.#onPageChanged(info);
      case 'Target.attachedToTarget':
        return this.#onAttached(channel, textAt(event.params, 'sessionId'), info);
      case 'Target.detachedFromTarget':
        return this.#onDetached(textAt(event.params, 'sessionId'));
      case 'Browser.downloadWillBegin':
      case 'Browser.downloadProgress':
        if (channel === this.#root) this.#handleDownloadEvent(event);
        return;
      case 'Target.targetCrashed':
        if (targetId) this.#mux.onTargetCrashed(targetId);
        return;
    }
  }

  #handleDownloadEvent(event: IncomingMessage): void {
    if (this.#downloadListener) dispatchDownloadEvent(event.method, event.params, this.#downloadListener);
    else if (this.#bufferedDownloadEvents.length < BUFFERED_DOWNLOAD_EVENTS_MAX)
      this.#bufferedDownloadEvents.push(event);
  }

  #onPageChanged(info: JsonObject | undefined): void {
    const [targetId, url] = [textAt(info, 'targetId'), textAt(info, 'url')];
    if (textAt(info, 'type') !== 'page' || targetId === undefined || url === undefined) return;
    if (this.pageLimit.isRefused(targetId)) return;
    if (WEB_URL_PATTERN.test(url) && (url !== this.#changedPage?.url || targetId !== this.#changedPage.targetId))
      this.#changedPage = { targetId, url };
  }

  #onTargetCreated(info: JsonObject | undefined): void {
    const targetId = textAt(info, 'targetId');
    if (textAt(info, 'type') !== 'page' || targetId === undefined) return;
    // Closing a page that is being prerendered would close the page that contains its address.
    const isAdmitted = textAt(info, 'subtype') === 'prerender' || this.pageLimit.admits(targetId);
    // The page may be closed before Chromium responds.
    if (isAdmitted) this.send('Target.attachToTarget', { targetId, flatten: true }).catch(() => {});
    else void this.#closeRefusedPage(targetId, info?.canAccessOpener === true).catch(() => {});
  }

  /**
   * A page with an opener is resumed first. If the page closes while it waits for a debugger, the `window.open` call that
   * created it never returns. A page without an opener does not report that it has resumed, and no call waits for it.
   */
  async #closeRefusedPage(targetId: string, hasOpener: boolean): Promise<void> {
    try {
      if (hasOpener) await this.#resumePage(targetId);
    } finally {
      await this.send('Target.closeTarget', { targetId });
    }
  }

  async #resumePage(targetId: string): Promise<void> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const channel = typeof sessionId === 'string' ? this.#mux.find(sessionId) : undefined;
    if (channel) await this.send('Runtime.runIfWaitingForDebugger', {}, channel);
  }

  #onAttached(parent: Channel, id: string | undefined, info: JsonObject | undefined): void {
    const targetId = textAt(info, 'targetId');
    if (!id || !targetId) return;
    const channel = this.#mux.open(id, this, parent, targetId);
    this.#pageIdsByTabChannel.get(parent.id)?.add(targetId);
    if (parent !== this.#root || textAt(info, 'type') !== 'page' || this.pageLimit.isRefused(targetId)) return;
    const page = { targetId, contextId: textAt(info, 'browserContextId'), channel };
    this.#pages.set(targetId, page);
    this.#firstPage.resolve(page);
    void this.#overrideGeolocation(channel);
  }

  async #overrideGeolocation(channel: Channel): Promise<void> {
    if (!this.#geolocation) return;
    await this.send('Emulation.setGeolocationOverride', { ...this.#geolocation }, channel).catch(() => {});
  }

  /** Returns the pages of a tab. Chromium reveals them only to a channel that is attached to the tab. */
  async #pagesIn(tabId: string): Promise<ReadonlySet<string>> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId: tabId, flatten: true });
    const channel = typeof sessionId === 'string' ? this.#mux.find(sessionId) : undefined;
    if (!channel) return new Set();
    const foundPageIds = new Set<string>();
    this.#pageIdsByTabChannel.set(channel.id, foundPageIds);
    try {
      const autoAttachParams = {
        autoAttach: true,
        waitForDebuggerOnStart: false,
        flatten: true,
        filter: typeFilter('page'),
      };
      await this.send('Target.setAutoAttach', autoAttachParams, channel);
      return foundPageIds;
    } finally {
      this.#pageIdsByTabChannel.delete(channel.id);
      await this.send('Target.detachFromTarget', { sessionId: channel.id });
      for (const page of foundPageIds) this.#mux.restoreOverrides(page, this);
    }
  }

  #onDetached(id: string | undefined): void {
    const channel = id === undefined ? undefined : this.#mux.find(id);
    if (!channel) return;
    if (channel.targetId && this.#pages.get(channel.targetId)?.channel === channel)
      this.#pages.delete(channel.targetId);
    this.#mux.drop(channel);
  }
}
