// One running Chromium as the rest of the server knows it: open a client on it, ask it something, hear that it broke.
// Starting its process is engines/slots' work; this file speaks to it over the two FIFOs.

import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reason } from '../../kit/fault.ts';
import { isObject, type Json, type JsonObject, textAt } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import { type Closeable, Scope } from '../../kit/scope.ts';
import { within } from '../../kit/wait.ts';
import { Control, type Geolocation, type Page } from './control.ts';
import { type Cookie, cookiesIn, cookieToSet } from './cookies.ts';
import type { DownloadListener } from './download-events.ts';
import { Extensions } from './extensions.ts';
import { readFrontEnd } from './front-end.ts';
import { Holds } from './holds.ts';
import { Mux, ProtocolFailure } from './mux.ts';
import { type ClientListener, type CommandTap, MuxClient, type Policy } from './mux-client.ts';
import { NavigationGuard, type NavigationRule } from './navigation-guard.ts';
import { Observation, type Observer } from './observation.ts';
import { PageAttachment } from './page-attachment.ts';
import { DOWNLOADS } from './policies.ts';

/** From the first byte to the first page. Under the 30 s that a create may take. */
const READY_MS = 25_000;
/** A page that has not answered by then is held back from the client that connects. */
const PROBE_MS = 2_500;
const DETACH_MS = 5_000;

export interface BrowserPipes {
  readonly fifoIn: string;
  readonly fifoOut: string;
  /** A folder that the browser cannot see; the channels are noted there for a successor. */
  readonly notes: string;
  /** The session folder as the browser sees it. */
  readonly folderInBox: string;
  /** The session's uploads as the browser sees them. */
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
  /** Empty where the page has none, or does not answer. */
  readonly faviconUrl: string;
}

const NO_VIEWPORT: Viewport = { width: 0, height: 0 };

export interface TakeWish {
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
  /** Calls back once the browser has read what waits for it; undefined when nothing much waits. */
  pressure(relieved: () => void): boolean;
  /** Bytes of messages that wait here, from it and for it. */
  readonly keptBytes: number;
  close(): Promise<void>;
}

export class Browser implements Closeable {
  readonly #mux: Mux;
  readonly #control: Control;
  readonly #holds = new Holds();
  #observation: Observation | undefined;
  #guardsNavigations = false;
  readonly #pipes: BrowserPipes;
  /** Those of the session; a client may have what is here and nothing else. */
  readonly extensions: Extensions;
  readonly #log: Log;
  readonly #scope = new Scope();
  #version: BrowserVersion | undefined;
  #viewport: Viewport = NO_VIEWPORT;
  /** The browser context that pages are in when nobody made one. */
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

  /** Speaks to a Chromium that was just started. Returns when its first page is there. */
  static async meet(pipes: BrowserPipes, log: Log, signal: AbortSignal): Promise<Browser> {
    const browser = new Browser(pipes, log);
    // On a machine that starts many at once the first answer takes most of the time there is.
    return browser.#ready(signal, () => browser.#openControl(READY_MS));
  }

  /** Speaks to a Chromium that a former process started: ends the channels that one left behind, keeps the pages. */
  static async adopt(pipes: BrowserPipes, log: Log, signal: AbortSignal): Promise<Browser> {
    const browser = new Browser(pipes, log);
    return browser.#ready(signal, async () => {
      browser.#mux.pipe.endHalfMessage();
      const orphans = browser.#notedChannels();
      await browser.#openControl();
      await browser.#letGo(orphans);
    });
  }

  /** Where its messages take long it is told whose they are. */
  belongsTo(sessionId: string): void {
    this.#mux.pipe.belongsTo(sessionId);
  }

  get version(): BrowserVersion {
    if (!this.#version) throw new Error('the browser is not ready');
    return this.#version;
  }

  /** Resolves when the pipe breaks, with why. */
  get failed(): Promise<Error> {
    return this.#mux.failed;
  }

  /** Browser contexts that clients made and that still stand. */
  async contextIds(): Promise<readonly string[]> {
    const { browserContextIds } = await this.#control.send('Target.getBrowserContexts');
    return Array.isArray(browserContextIds) ? browserContextIds.filter(id => typeof id === 'string') : [];
  }

  /** A browser context that a client has just made gets what the session asked for, before the client hears of it. */
  async equipContext(contextId: string): Promise<void> {
    await this.keepDownloads(contextId);
    await this.#control.locateContext(contextId);
  }

  /** Downloads of this context (default: every one) are kept in the session's own folder under their GUID. */
  async keepDownloads(contextId?: string): Promise<void> {
    if (contextId === undefined) {
      await this.#keepDownloadsOf({});
      for (const id of await this.contextIds()) await this.#keepDownloadsOf({ browserContextId: id }).catch(() => {});
    } else await this.#keepDownloadsOf({ browserContextId: contextId });
  }

  /** Gives the running browser what its session asked for; the first client comes after this. */
  async take({ viewport, geolocation }: TakeWish): Promise<void> {
    await this.#resize(viewport);
    if (geolocation) await this.#control.locate(geolocation);
  }

  get uploadFolder(): string {
    return this.#pipes.uploadsInBox;
  }

  /** What a client's own setDownloadBehavior becomes: its path is of its machine, the files belong to the session. */
  get downloadFolder(): string {
    return `${this.#pipes.folderInBox}/${DOWNLOADS}`;
  }

  /** Downloads of every browser context, whoever began them. */
  tellOfDownloads(listener: DownloadListener): void {
    this.#control.tellOfDownloads(listener);
  }

  /** Which context it is in is not told, so each is asked; one that is over is cancelled already. */
  async cancelDownload(guid: string): Promise<void> {
    const contexts = await this.contextIds();
    for (const context of [{}, ...contexts.map(browserContextId => ({ browserContextId }))])
      await this.#control.send('Browser.cancelDownload', { guid, ...context }).catch(() => {});
  }

  /** Of the default context: those of contexts that clients made go with these. */
  async cookies(): Promise<readonly Cookie[]> {
    return cookiesIn(await this.#control.send('Storage.getCookies'));
  }

  /** Sets them in the default context. One that Chromium refuses takes none of the others with it; returns how many it refused. */
  async setCookies(cookies: readonly Cookie[]): Promise<number> {
    const wanted = cookies.map(cookieToSet).filter(cookie => cookie !== undefined);
    if (wanted.length === 0) return cookies.length;
    const all = await this.#setCookies(wanted);
    if (all) return cookies.length - wanted.length;
    let set = 0;
    for (const cookie of wanted) if (await this.#setCookies([cookie])) set++;
    return cookies.length - set;
  }

  /** Chromium closes by itself and writes down what it has in memory; the pipe breaks when it is gone. */
  async shutDown(): Promise<void> {
    await Promise.race([this.#control.send('Browser.close'), this.#mux.failed]).catch(() => {});
  }

  /** A channel of its own for one client. Pages that do not answer are held back from it until they do. */
  async openClient(policy: Policy, listener: ClientListener, tap?: CommandTap): Promise<BrowserClient> {
    const stuck = await this.#control.unresponsivePages(PROBE_MS);
    await this.#ensurePage(stuck);
    const tabs = await this.#control.tabsOf(stuck);
    const client = new MuxClient(this.#mux, this.#holds, policy, listener, tap);
    for (const page of stuck) {
      const tabId = tabs.get(page);
      const targets = tabId === undefined ? [page.targetId] : [tabId, page.targetId];
      for (const target of targets) client.withhold(target);
      void this.#control.responds(page).then(answers => {
        if (answers) for (const target of targets) client.reveal(target);
      });
    }
    await client.open(id => this.#note(`+${id}`));
    return this.#clientHandle(client);
  }

  /** A client to whom one page is all there is. Undefined: there is no such page (any more). */
  async openPageClient(
    targetId: string,
    policy: Policy,
    listener: ClientListener & { readonly pageGone: () => void },
  ): Promise<BrowserClient | undefined> {
    if (!this.#control.pages.some(page => page.targetId === targetId)) return undefined;
    const client = new MuxClient(this.#mux, this.#holds, policy, listener);
    const attachment = new PageAttachment(this.#mux, targetId, client, listener.pageGone);
    try {
      client.openOnPage(await attachment.open(id => this.#note(`+${id}`)));
    } catch (error) {
      if (attachment.channelId && !this.#mux.isClosed) await this.#detach(attachment.channelId);
      if (error instanceof ProtocolFailure) return undefined;
      throw error;
    }
    return this.#clientHandle(client, () => attachment.close());
  }

  /** The files of DevTools that this Chromium brings with it, by path. Only where `devtools:` pages may be opened. */
  readFrontEnd(): Promise<ReadonlyMap<string, Buffer>> {
    return readFrontEnd(this.#control);
  }

  /** An empty page in front of the others, in the context that pages are in when nobody made one. */
  async newPage(): Promise<void> {
    await this.#control.send('Target.createTarget', { url: 'about:blank' });
  }

  /** The pages as they are now. */
  async listPages(): Promise<readonly PageInfo[]> {
    const infos = await this.#control.pageInfos();
    return Promise.all(infos.map(async info => ({ ...info, faviconUrl: await this.#control.faviconOf(info.id) })));
  }

  /** Tells of every page, popup, frame and worker, those that are there and those that come, until it is closed. */
  async observe(observer: Observer): Promise<Closeable> {
    const observation = this.#observation ?? this.#openObservation();
    this.#observation = observation;
    const added = observation.add(observer);
    await observation.opened;
    return {
      close: async () => {
        await added.close();
        if (!observation.isWanted) await this.#endObservation(observation);
      },
    };
  }

  /** From now on documents come only from where the rule says, whoever asks for them. */
  async guardNavigations(rule: NavigationRule): Promise<void> {
    this.#guardsNavigations = true;
    await new NavigationGuard(this.#mux, rule).open(id => this.#note(`+${id}`));
  }

  /** A client that stood nearer to the network than we do could lead a request elsewhere after we have judged it. */
  get guardsNavigations(): boolean {
    return this.#guardsNavigations;
  }

  async close(): Promise<void> {
    await this.#scope.close();
    this.#observation?.close();
  }

  #openObservation(): Observation {
    return new Observation(this.#mux, this.#holds, id => this.#note(`+${id}`));
  }

  /** Nobody looks any more: what comes now is not held for us, and what clients have made pages pretend goes on. */
  async #endObservation(observation: Observation): Promise<void> {
    if (this.#observation !== observation) return;
    this.#observation = undefined;
    await observation.opened.catch(() => {});
    const { channelId, documents } = observation;
    if (channelId && !this.#mux.isClosed) await this.#detach(channelId);
    for (const id of documents) this.#mux.sayOverridesAgain(id, observation);
    observation.close();
  }

  async #ready(signal: AbortSignal, open: () => Promise<void>): Promise<Browser> {
    try {
      await within(READY_MS, 'Chromium to be ready', async () => Promise.race([open(), this.#broken()]), signal);
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #broken(): Promise<never> {
    throw await this.#mux.failed;
  }

  async #openControl(firstAnswerMs?: number): Promise<void> {
    await this.#control.open(id => this.#note(`+${id}`), firstAnswerMs);
    const version = await this.#control.send('Browser.getVersion');
    this.#version = {
      product: textAt(version, 'product') ?? '',
      protocolVersion: textAt(version, 'protocolVersion') ?? '1.3',
      userAgent: textAt(version, 'userAgent') ?? '',
      revision: textAt(version, 'revision') ?? '',
      jsVersion: textAt(version, 'jsVersion') ?? '',
    };
    await this.#keepDownloadsOf({});
    const page = await this.#control.firstPage();
    this.#defaultContextId = await this.#findDefaultContext(page.contextId);
  }

  /** Exactly this many pixels for the page. Chromium gives a new window the size of the last one, in every browser context. */
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
    const own = new Set(await this.contextIds());
    if (contextOfFirstPage !== undefined && !own.has(contextOfFirstPage)) return contextOfFirstPage;
    return this.#control.pages.find(page => page.contextId !== undefined && !own.has(page.contextId))?.contextId;
  }

  /** Clients read `contexts()[0].pages()[0]` right after connecting: one page of the default context always exists, and answers. */
  async #ensurePage(stuck: readonly Page[]): Promise<void> {
    const inDefault = this.#control.pages.some(
      page => page.contextId === this.#defaultContextId && !stuck.includes(page),
    );
    if (!inDefault) await this.#control.send('Target.createTarget', { url: 'about:blank' });
  }

  #clientHandle(client: MuxClient, rootOf: () => string | undefined = () => client.channelId): BrowserClient {
    return {
      receive: message => client.receive(message),
      get keptBytes() {
        return client.keptBytes;
      },
      pressure: relieved => {
        if (!this.#mux.pipe.isFull) return false;
        this.#mux.pipe.onDrain(relieved);
        return true;
      },
      close: async () => {
        const root = rootOf();
        if (root) await this.#letGo([root]);
        client.close();
      },
    };
  }

  /**
   * What a channel had set for downloads ends with it, and a download that begins then goes where nobody looks. So what we
   * want is said in the same breath, and Chromium reads both at once: there is no moment in between.
   */
  async #letGo(channels: readonly string[]): Promise<void> {
    const contexts = await this.contextIds().catch(() => []); // of a browser that is going
    if (this.#mux.isClosed) return; // and took its channels with it
    const gone = channels.map(channel => this.#detach(channel));
    const wanted = [{}, ...contexts.map(browserContextId => ({ browserContextId }))];
    const kept = wanted.map(context => this.#keepDownloadsOf(context).catch(() => {})); // contexts may go with their client
    await Promise.all([...gone, ...kept]);
  }

  async #detach(channelId: string): Promise<void> {
    try {
      await within(DETACH_MS, 'Chromium to detach a channel', () => this.#mux.detachFromBrowser(channelId));
    } catch (error) {
      // All channels of a browser that has been closed meanwhile are gone.
      if (!this.#mux.isClosed) this.#log.warn('browser.detach_failed', { channel: channelId, error });
    }
    this.#note(`-${channelId}`);
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

  #keepDownloadsOf(context: JsonObject): Promise<JsonObject> {
    const behavior = { behavior: 'allowAndName', downloadPath: this.downloadFolder, eventsEnabled: true };
    return this.#control.send('Browser.setDownloadBehavior', { ...behavior, ...context });
  }

  /** Written before the first byte of a client passes: what a dead server's channels hold would hang the browser. */
  #note(line: string): void {
    appendFileSync(join(this.#pipes.notes, 'channels'), `${line}\n`, { mode: 0o600 });
  }

  #notedChannels(): readonly string[] {
    const open = new Set<string>();
    for (const line of readFileSync(join(this.#pipes.notes, 'channels'), 'utf8').split('\n')) {
      if (line.startsWith('+')) open.add(line.slice(1));
      else if (line.startsWith('-')) open.delete(line.slice(1));
    }
    return [...open];
  }
}

function firstScreenId(screenInfos: Json | undefined): string | undefined {
  const first = Array.isArray(screenInfos) ? screenInfos[0] : undefined;
  return isObject(first) ? textAt(first, 'id') : undefined;
}
