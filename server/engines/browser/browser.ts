// The class through which other parts of the server use one running Chromium: it opens clients, sends commands, and
// reports failures. The code in engines/slots starts the process. The class communicates with the process over the two
// FIFOs in `BrowserPipes`.

import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reason } from '../../kit/fault.ts';
import { isObject, type Json, type JsonObject, textAt } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import { type Closeable, Scope } from '../../kit/scope.ts';
import { pollUntil, WaitExpired, withTimeout } from '../../kit/wait.ts';
import { type ChangedPage, Control, type Geolocation, type Page } from './control.ts';
import { type Cookie, cookiesIn, cookieToSet } from './cookies.ts';
import type { DownloadListener } from './download-events.ts';
import { Extensions } from './extensions.ts';
import { readFrontEnd } from './front-end.ts';
import { Holds } from './holds.ts';
import { Mux, ProtocolFailure } from './mux.ts';
import { type ClientListener, type CommandTap, MuxClient, type Policy } from './mux-client.ts';
import { NavigationGuard, type NavigationRule } from './navigation-guard.ts';
import { Observation, type ObservedTarget, type Observer } from './observation.ts';
import { PageAttachment } from './page-attachment.ts';
import { OPEN_PAGES_MAX } from './page-limit.ts';
import { DOWNLOADS_FOLDER } from './policies.ts';

/** The time limit for connecting to a Chromium that is already running. Many sessions may be adopted at once. */
const ADOPTION_TIMEOUT_MS = 25_000;
/** A page that does not respond within this time is withheld from a client that connects. */
const PROBE_TIMEOUT_MS = 2_500;
const DETACH_TIMEOUT_MS = 5_000;
const CLOSED_CHECK_INTERVAL_MS = 5;
/**
 * How long to wait until a page has discarded its log. A page that does not respond in time, such as one with a dialog,
 * still discards its log before it handles any later command.
 */
const DISCARD_TIMEOUT_MS = 1_000;
/**
 * Commands that discard what scripts and the browser have logged. Otherwise, Chromium would send the logged messages
 * again to each channel that enables the Runtime or Log domain later.
 */
const DISCARD_METHODS = ['Runtime.discardConsoleEntries', 'Log.clear'];

export interface BrowserPipes {
  readonly fifoIn: string;
  readonly fifoOut: string;
  /**
   * A folder that the browser cannot access. Channels are recorded there so that a restarted server can detach them.
   */
  readonly notes: string;
  /** The path of the session folder inside the box. */
  readonly folderInBox: string;
  /** The path of the session's uploads folder inside the box. */
  readonly uploadsInBox: string;
}

export interface Viewport {
  readonly width: number;
  readonly height: number;
}

export interface PageInfo {
  /** The CDP target id. */
  readonly id: string;
  readonly url: string;
  readonly title: string;
  /** Empty if the page has no icon or does not respond. */
  readonly faviconUrl: string;
  /** Whether the page responded within half a second. */
  readonly isResponsive: boolean;
}

const NO_VIEWPORT: Viewport = { width: 0, height: 0 };

export interface SessionSettings {
  readonly viewport: Viewport;
  readonly geolocation?: Geolocation;
}

export interface BrowserVersion {
  readonly product: string;
  readonly protocolVersion: string;
  readonly userAgent: string;
  readonly revision: string;
  readonly jsVersion: string;
}

export interface BrowserClient {
  receive(message: Buffer): void;
  /**
   * Returns whether the browser reads too slowly. If so, `onDrained` is called when the browser has read the waiting
   * bytes.
   */
  isBackpressured(onDrained: () => void): boolean;
  /** Sends the client one of the server's own events. */
  announce(method: string, params: JsonObject): void;
  /** Sends the events that the client's policy has withheld. */
  sendWithheld(): void;
  /** Bytes of messages that are buffered for this client, in both directions. */
  readonly bufferedBytes: number;
  close(): Promise<void>;
}

/** Clients of a session may create at most this many browser contexts. */
const CONTEXTS_MAX = 50;

export class Browser implements Closeable {
  readonly contextsMax = CONTEXTS_MAX;
  readonly pagesMax = OPEN_PAGES_MAX;
  readonly #mux: Mux;
  readonly #control: Control;
  readonly #holds = new Holds();
  #observation: Observation | undefined;
  #isGuardingNavigations = false;
  readonly #pipes: BrowserPipes;
  /** The extensions of the session. A client may load these and no others. */
  readonly extensions: Extensions;
  readonly #log: Log;
  readonly #scope = new Scope();
  #version: BrowserVersion | undefined;
  #viewport: Viewport = NO_VIEWPORT;
  /** The browser context of pages that were created without a context id. */
  #defaultContextId: string | undefined;

  private constructor(pipes: BrowserPipes, log: Log) {
    this.#pipes = pipes;
    this.#log = log;
    this.#mux = this.#scope.own(
      new Mux(pipes.fifoIn, pipes.fifoOut, error => log.warn('browser.message_lost', { reason: reason(error) })),
    );
    this.#control = new Control(this.#mux);
    this.extensions = new Extensions(this.#control);
  }

  /** Connects to a Chromium that was just started. Resolves when its first page exists, within `ms`. */
  static async connect(pipes: BrowserPipes, log: Log, ms: number, signal: AbortSignal): Promise<Browser> {
    const browser = new Browser(pipes, log);
    // The first response may take the whole time limit. When many browsers start at once, most of the start time is
    // spent waiting for it.
    return browser.#waitUntilReady(ms, signal, () => browser.#openControl(ms));
  }

  /**
   * Connects to a Chromium that a previous process started. Detaches the channels of that process and keeps the pages.
   */
  static async adopt(pipes: BrowserPipes, log: Log, signal: AbortSignal): Promise<Browser> {
    const browser = new Browser(pipes, log);
    return browser.#waitUntilReady(ADOPTION_TIMEOUT_MS, signal, async () => {
      browser.#mux.pipe.endPartialMessage();
      const orphans = browser.#notedChannelIds();
      await browser.#openControl();
      await browser.#detachChannels(orphans);
    });
  }

  /** Sets the session id that is included in reports about messages that were slow to handle. */
  setSessionId(sessionId: string): void {
    this.#mux.pipe.setSessionId(sessionId);
  }

  get version(): BrowserVersion {
    if (!this.#version) throw new Error('the browser is not ready');
    return this.#version;
  }

  /** Resolves with the cause when the pipe breaks or when too many messages could not be handled. */
  get failed(): Promise<Error> {
    return this.#mux.failed;
  }

  /** Whether the browser process does not respond within `ms`. False if its connection is closed in the meantime. */
  async hangs(ms: number): Promise<boolean> {
    try {
      await this.#control.send('Browser.getVersion', {}, undefined, ms);
      return false;
    } catch (error) {
      return error instanceof WaitExpired;
    }
  }

  /** Returns the browser contexts that clients created and that still exist. */
  async contextIds(): Promise<readonly string[]> {
    const { browserContextIds } = await this.#control.send('Target.getBrowserContexts');
    return Array.isArray(browserContextIds) ? browserContextIds.filter(id => typeof id === 'string') : [];
  }

  /**
   * Applies the session's settings to a new browser context. Must be called before the client gets the response to the
   * command that created the context.
   */
  async prepareContext(contextId: string): Promise<void> {
    await this.captureDownloads(contextId);
    await this.#control.grantGeolocation(contextId);
  }

  /**
   * Makes Chromium save downloads in the session's folder. Applies to one browser context or, if `contextId` is absent,
   * to all of them. The name of each file is the GUID of its download.
   */
  async captureDownloads(contextId?: string): Promise<void> {
    if (contextId === undefined) {
      await this.#captureDownloads({});
      for (const id of await this.contextIds()) await this.#captureDownloads({ browserContextId: id }).catch(() => {});
    } else await this.#captureDownloads({ browserContextId: contextId });
  }

  /** Applies the settings of the session to the running browser, before the first client connects. */
  async applySettings({ viewport, geolocation }: SessionSettings): Promise<void> {
    await this.#resize(viewport);
    if (geolocation) await this.#control.setGeolocation(geolocation);
  }

  /** Reapplies the settings that were lost when the channels of the previous server process were detached. */
  async reapplySettings({ geolocation }: SessionSettings): Promise<void> {
    if (!geolocation) return;
    await this.#control.setGeolocation(geolocation);
    // A browser context may end with its client at any time. The list comes from the browser, so it is bounded.
    const contextIds = (await this.contextIds()).slice(0, CONTEXTS_MAX);
    await Promise.allSettled(contextIds.map(id => this.#control.grantGeolocation(id)));
  }

  get uploadFolder(): string {
    return this.#pipes.uploadsInBox;
  }

  /**
   * The folder that replaces the path in a client's setDownloadBehavior, because that path names a folder on the
   * client's machine.
   */
  get downloadFolder(): string {
    return `${this.#pipes.folderInBox}/${DOWNLOADS_FOLDER}`;
  }

  /** Reports the downloads of every browser context to the listener, whether a client or a page started them. */
  onDownloads(listener: DownloadListener): void {
    this.#control.onDownloads(listener);
  }

  /**
   * Cancels a download. Chromium does not report to which browser context a download belongs, so the command is sent to
   * each browser context. Errors are ignored, because the command fails in the other contexts, and if the download has
   * finished.
   */
  async cancelDownload(guid: string): Promise<void> {
    const contextIds = await this.contextIds();
    for (const contextParams of [{}, ...contextIds.map(browserContextId => ({ browserContextId }))])
      await this.#control.send('Browser.cancelDownload', { guid, ...contextParams }).catch(() => {});
  }

  /**
   * Returns the cookies of the default browser context. The cookies of any other browser context are deleted together
   * with that context.
   */
  async cookies(): Promise<readonly Cookie[]> {
    return cookiesIn(await this.#control.send('Storage.getCookies'));
  }

  /**
   * Sets cookies in the default browser context. A cookie that Chromium refuses does not affect the others. Returns the
   * number of refused cookies.
   */
  async setCookies(cookies: readonly Cookie[]): Promise<number> {
    const settableCookies = cookies.map(cookieToSet).filter(cookie => cookie !== undefined);
    if (settableCookies.length === 0) return cookies.length;
    const areAllSet = await this.#setCookies(settableCookies);
    if (areAllSet) return cookies.length - settableCookies.length;
    let setCount = 0;
    for (const cookie of settableCookies) if (await this.#setCookies([cookie])) setCount++;
    return cookies.length - setCount;
  }

  /**
   * Sends `Browser.close`, so that Chromium writes its profile to disk and exits. Resolves when Chromium responds or
   * the pipe breaks.
   */
  async shutDown(): Promise<void> {
    try {
      await Promise.race([this.#control.send('Browser.close'), this.#mux.failed]);
    } catch {
      // The connection is closed already.
    }
  }

  /** Opens a channel for one client. Unresponsive pages are withheld from the client until they respond. */
  async openClient(policy: Policy, listener: ClientListener, tap?: CommandTap): Promise<BrowserClient> {
    const unresponsivePages = await this.#control.unresponsivePages(PROBE_TIMEOUT_MS);
    await this.#ensurePage(unresponsivePages);
    const tabs = await this.#control.tabsOf(unresponsivePages);
    const client = new MuxClient(this.#mux, this.#holds, policy, listener, tap);
    for (const page of unresponsivePages) {
      const tabId = tabs.get(page);
      const targetIds = tabId === undefined ? [page.targetId] : [tabId, page.targetId];
      for (const targetId of targetIds) client.withhold(targetId);
      void this.#control.waitForResponse(page).then(hasResponded => {
        if (hasResponded) for (const target of targetIds) client.reveal(target);
      });
    }
    await client.open(id => this.#appendNote(`+${id}`));
    return this.#clientHandle(client);
  }

  /** Opens a client that can reach only one page. Returns undefined if the page does not exist. */
  async openPageClient(
    targetId: string,
    policy: Policy,
    listener: ClientListener & { readonly onPageGone: () => void },
  ): Promise<BrowserClient | undefined> {
    if (!this.#control.pages.some(page => page.targetId === targetId)) return undefined;
    const client = new MuxClient(this.#mux, this.#holds, policy, listener);
    const attachment = new PageAttachment(this.#mux, targetId, client, listener.onPageGone);
    try {
      client.openOnPage(await attachment.open(id => this.#appendNote(`+${id}`)));
    } catch (error) {
      if (attachment.channelId && !this.#mux.isClosed) await this.#detach(attachment.channelId);
      if (error instanceof ProtocolFailure) return undefined;
      throw error;
    }
    return this.#clientHandle(client, () => attachment.close());
  }

  /**
   * Returns the DevTools files that are bundled with this Chromium, by path. Works only if the policies of the browser
   * allow `devtools:` pages.
   */
  readFrontEnd(): Promise<ReadonlyMap<string, Buffer>> {
    return readFrontEnd(this.#control);
  }

  /** Calls the listener for each page that is closed because the browser already had `pagesMax` pages. */
  onPageRefused(listener: () => void): void {
    this.#control.pageLimit.onRefused(listener);
  }

  /** Whether a further page would be closed. */
  get isPageLimitReached(): boolean {
    return this.#control.pageLimit.isReached;
  }

  /**
   * Opens an empty page in the foreground of the default browser context. Returns its target id, or undefined if the
   * browser has `pagesMax` pages.
   */
  async newPage(): Promise<string | undefined> {
    if (this.isPageLimitReached) return undefined;
    return textAt(await this.#control.send('Target.createTarget', { url: 'about:blank' }), 'targetId');
  }

  /** Among the pages with a web address, the page whose address changed last. Each change creates a new object. */
  get changedPage(): ChangedPage | undefined {
    return this.#control.changedPage;
  }

  /**
   * Returns the current title of a page. The title is untrusted and unbounded. Returns undefined if the page does not
   * exist or its address is no longer `url`.
   */
  async titleOf({ targetId, url }: ChangedPage): Promise<string | undefined> {
    return (await this.#control.pageInfos()).find(info => info.id === targetId && info.url === url)?.title;
  }

  /**
   * Closes every page. Their `pagehide` and `unload` listeners run. Waits until they are closed or the connection breaks,
   * and throws `WaitExpired` if pages remain after `ms` milliseconds.
   */
  async closePages(ms: number): Promise<void> {
    for (const { targetId } of this.#control.pages)
      this.#control.send('Target.closeTarget', { targetId }).catch(() => {}); // The page may be closed already.
    const checkClosed = (): true | undefined => (this.#control.pages.length === 0 ? true : undefined);
    await Promise.race([pollUntil(ms, 'the pages to close', checkClosed, CLOSED_CHECK_INTERVAL_MS), this.#mux.failed]);
  }

  async listPages(): Promise<readonly PageInfo[]> {
    const pageInfos = await this.#control.pageInfos();
    return Promise.all(pageInfos.map(async info => ({ ...info, ...(await this.#control.inspectPage(info.id)) })));
  }

  /** Reports every existing and new page, popup, frame and worker until the returned handle is closed. */
  async observe(observer: Observer): Promise<Closeable> {
    const observation = this.#observation ?? this.#openObservation();
    this.#observation = observation;
    const registration = observation.add(observer);
    try {
      await observation.whenOpened;
    } catch (error) {
      // An observation that has failed cannot be used, so the next observer opens a new one.
      await registration.close();
      await this.#stopObservation(observation);
      throw error;
    }
    return {
      close: async () => {
        await registration.close();
        if (!observation.hasObservers) await this.#stopObservation(observation);
      },
    };
  }

  /**
   * Makes every page, frame and worker discard its console messages. When the returned promise resolves, none of these
   * messages are in transit.
   */
  async discardConsole(): Promise<void> {
    const responses: Array<Promise<unknown>> = [];
    const target = (one: ObservedTarget): void => {
      for (const method of DISCARD_METHODS) responses.push(one.send(method, {}, DISCARD_TIMEOUT_MS).catch(() => {}));
    };
    const consoleObservation = await this.observe({ target });
    await Promise.all(responses);
    await consoleObservation.close();
  }

  /** Allows documents only from hosts that the rule allows, for as long as the browser runs. */
  async guardNavigations(rule: NavigationRule): Promise<void> {
    this.#isGuardingNavigations = true;
    await new NavigationGuard(this.#mux, rule).open(id => this.#appendNote(`+${id}`));
  }

  /** Guards navigations like `guardNavigations`, but only until the returned handle is closed. */
  async restrictNavigations(rule: NavigationRule): Promise<Closeable> {
    const guard = new NavigationGuard(this.#mux, rule);
    const close = async (): Promise<void> => {
      if (guard.channelId && !this.#mux.isClosed) await this.#detach(guard.channelId);
    };
    try {
      await guard.open(id => this.#appendNote(`+${id}`));
    } catch (error) {
      // Detach the guard, because otherwise the restriction would apply until the session ends.
      await close();
      throw error;
    }
    return { close };
  }

  /**
   * While true, clients may not enable Fetch on the browser, because they could redirect a request after the guard has
   * checked it.
   */
  get isGuardingNavigations(): boolean {
    return this.#isGuardingNavigations;
  }

  async close(): Promise<void> {
    await this.#scope.close();
    this.#observation?.close();
  }

  #openObservation(): Observation {
    return new Observation(this.#mux, this.#holds, {
      beforeUse: id => this.#appendNote(`+${id}`),
      isIgnored: targetId => this.#control.pageLimit.isRefused(targetId),
    });
  }

  /**
   * Closes the observation, so that new targets are no longer held. Detaching its channel resets overrides that clients
   * have set, so these are set again.
   */
  async #stopObservation(observation: Observation): Promise<void> {
    if (this.#observation !== observation) return;
    this.#observation = undefined;
    await observation.whenOpened.catch(() => {});
    const { channelId, documents } = observation;
    if (channelId && !this.#mux.isClosed) await this.#detach(channelId);
    for (const id of documents) this.#mux.restoreOverrides(id, observation);
    observation.close();
  }

  async #waitUntilReady(ms: number, signal: AbortSignal, open: () => Promise<void>): Promise<Browser> {
    try {
      await withTimeout(
        ms,
        'Chromium to be ready',
        async () => Promise.race([open(), this.#rejectOnFailure()]),
        signal,
      );
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #rejectOnFailure(): Promise<never> {
    throw await this.#mux.failed;
  }

  async #openControl(firstResponseMs?: number): Promise<void> {
    await this.#control.open(id => this.#appendNote(`+${id}`), firstResponseMs);
    const version = await this.#control.send('Browser.getVersion');
    this.#version = {
      product: textAt(version, 'product') ?? '',
      protocolVersion: textAt(version, 'protocolVersion') ?? '1.3',
      userAgent: textAt(version, 'userAgent') ?? '',
      revision: textAt(version, 'revision') ?? '',
      jsVersion: textAt(version, 'jsVersion') ?? '',
    };
    await this.#captureDownloads({});
    const page = await this.#control.firstPage();
    this.#defaultContextId = await this.#findDefaultContext(page.contextId);
  }

  /**
   * Resizes the window so that the page has exactly the size of `viewport`. Chromium gives new windows of every browser
   * context the size of the last window.
   */
  async #resize(viewport: Viewport): Promise<void> {
    if (viewport.width === this.#viewport.width && viewport.height === this.#viewport.height) return;
    const page = await this.#control.firstPage();
    const { windowId } = await this.#control.send('Browser.getWindowForTarget', { targetId: page.targetId });
    const { screenInfos } = await this.#control.send('Emulation.getScreenInfos', {}, page.channel);
    const screenId = firstScreenId(screenInfos);
    if (screenId !== undefined)
      await this.#control.send('Emulation.updateScreen', { screenId, ...viewport }, page.channel);
    await this.#control.send('Browser.setContentsSize', { windowId: windowId ?? null, ...viewport });
    this.#viewport = viewport;
  }

  async #findDefaultContext(contextOfFirstPage: string | undefined): Promise<string | undefined> {
    const clientContextIds = new Set(await this.contextIds());
    if (contextOfFirstPage !== undefined && !clientContextIds.has(contextOfFirstPage)) return contextOfFirstPage;
    return this.#control.pages.find(page => page.contextId !== undefined && !clientContextIds.has(page.contextId))
      ?.contextId;
  }

  /**
   * Ensures that the default browser context has a page that responds, because clients read `contexts()[0].pages()[0]`
   * right after connecting.
   */
  async #ensurePage(unresponsivePages: readonly Page[]): Promise<void> {
    const hasDefaultPage = this.#control.pages.some(
      page => page.contextId === this.#defaultContextId && !unresponsivePages.includes(page),
    );
    const { pageLimit } = this.#control;
    if (!hasDefaultPage)
      await pageLimit.createOwn(() => this.#control.send('Target.createTarget', { url: 'about:blank' }));
  }

  #clientHandle(client: MuxClient, getRootId: () => string | undefined = () => client.channelId): BrowserClient {
    return {
      receive: message => client.receive(message),
      announce: (method, params) => client.announce(method, params),
      sendWithheld: () => client.sendWithheld(),
      get bufferedBytes() {
        return client.bufferedBytes;
      },
      isBackpressured: onDrained => {
        if (!this.#mux.pipe.isFull) return false;
        this.#mux.pipe.onDrain(onDrained);
        return true;
      },
      close: async () => {
        const root = getRootId();
        if (root) await this.#detachChannels([root]);
        client.close();
      },
    };
  }

  /**
   * Detaching a channel resets the download behavior that it set. A download that starts at that moment would be lost.
   * The commands that capture downloads are therefore sent in the same write as the commands that detach, and Chromium
   * handles them without a gap.
   */
  async #detachChannels(channelIds: readonly string[]): Promise<void> {
    const contextIds = await this.contextIds().catch(() => []); // the browser may be exiting
    if (this.#mux.isClosed) return;
    const detachments = channelIds.map(channel => this.#detach(channel));
    const downloadContexts = [{}, ...contextIds.map(browserContextId => ({ browserContextId }))];
    // a browser context may end with its client
    const downloadCommands = downloadContexts.map(contextParams =>
      this.#captureDownloads(contextParams).catch(() => {}),
    );
    await Promise.all([...detachments, ...downloadCommands]);
  }

  async #detach(channelId: string): Promise<void> {
    try {
      await withTimeout(DETACH_TIMEOUT_MS, 'Chromium to detach a channel', () =>
        this.#mux.detachFromBrowser(channelId),
      );
    } catch (error) {
      // If the browser has been closed in the meantime, its channels no longer exist.
      if (!this.#mux.isClosed) this.#log.warn('browser.detach_failed', { channel: channelId, error });
    }
    this.#appendNote(`-${channelId}`);
  }

  async #setCookies(cookies: readonly JsonObject[]): Promise<boolean> {
    try {
      await this.#control.send('Storage.setCookies', { cookies });
      return true;
    } catch (error) {
      if (error instanceof ProtocolFailure) return false;
      throw error;
    }
  }

  #captureDownloads(contextParams: JsonObject): Promise<JsonObject> {
    const behavior = { behavior: 'allowAndName', downloadPath: this.downloadFolder, eventsEnabled: true };
    return this.#control.send('Browser.setDownloadBehavior', { ...behavior, ...contextParams });
  }

  /**
   * Records a channel that was opened or detached. The line is written before the first message of a client is
   * forwarded. If the server dies, the next server process must detach the channel, because targets that the channel
   * holds make the browser hang.
   */
  #appendNote(line: string): void {
    appendFileSync(join(this.#pipes.notes, 'channels'), `${line}\n`, { mode: 0o600 });
  }

  #notedChannelIds(): readonly string[] {
    const openIds = new Set<string>();
    for (const line of readFileSync(join(this.#pipes.notes, 'channels'), 'utf8').split('\n')) {
      if (line.startsWith('+')) openIds.add(line.slice(1));
      else if (line.startsWith('-')) openIds.delete(line.slice(1));
    }
    return [...openIds];
  }
}

function firstScreenId(screenInfos: Json | undefined): string | undefined {
  const first = Array.isArray(screenInfos) ? screenInfos[0] : undefined;
  return isObject(first) ? textAt(first, 'id') : undefined;
}
