// The Playwright driver for the table of clients. It listens on the context, which reports every page from its first
// event on. A listener on a popup could be added too late.
import {
  type BrowserContext,
  chromium,
  type Browser as PlaywrightBrowser,
  type Page as PlaywrightPage,
  type Request,
} from 'playwright-core';
import {
  BASE_READY_CONDITION,
  type Cell,
  type Driver,
  isRecorded,
  opensByScript,
  pathOf,
  READY_CONDITION,
  STATE_SCRIPT,
  stepUrlsOf,
  TrackRecorder,
  type TracksReader,
  trackNameOf,
  UNREGISTER_WORKERS_SCRIPT,
  windowOpenScript,
} from './client-cells.ts';
import { eventually } from './until.ts';

export class PlaywrightDriver implements Driver {
  readonly #browser: PlaywrightBrowser;
  readonly #site: string;

  private constructor(browser: PlaywrightBrowser, site: string) {
    this.#browser = browser;
    this.#site = site;
  }

  static async open(url: string, site: string): Promise<Driver> {
    return new PlaywrightDriver(await chromium.connectOverCDP(url), site);
  }

  async run(cell: Cell): Promise<TracksReader> {
    const recorder = new TrackRecorder();
    const createdContext = cell.ownContext ? await this.#browser.newContext({ viewport: null }) : undefined;
    const context = createdContext ?? this.#browser.contexts()[0];
    if (!context) throw new Error('the browser has no default context');
    const pageCountBefore = context.pages().length;
    const stopListening = listen(context, cell, recorder);
    const base = await context.newPage();
    base.on('popup', popup => recorder.add('popups', trackNameOf(popup.url())));
    await base.goto(`${this.#site}/base`);
    await base.waitForFunction(BASE_READY_CONDITION);
    const pages = (): PlaywrightPage[] => context.pages().slice(pageCountBefore + 1);
    const urls: string[] = [];
    for (const step of stepUrlsOf(this.#site)) {
      urls.push(...step);
      await this.#open(cell, step, context, base);
      await eventually('the pages of the cell', pages, found => found.length === urls.length);
      for (const page of pages()) await page.waitForFunction(READY_CONDITION);
    }
    const openedPages = pages();
    for (const page of openedPages) {
      recorder.add(`${trackNameOf(page.url())} state`, String(await page.evaluate(STATE_SCRIPT)), page.viewportSize());
      recorder.add(`${trackNameOf(page.url())} opener`, (await page.opener())?.url().replace(this.#site, '') ?? 'none');
    }
    await base.evaluate(UNREGISTER_WORKERS_SCRIPT);
    const channel = await context.newCDPSession(base);
    await channel.send('ServiceWorker.enable');
    await channel.send('ServiceWorker.stopAllWorkers');
    for (const page of [...openedPages, base]) {
      const name = trackNameOf(page.url());
      await page.close();
      recorder.add(`${name} closed`, page.isClosed());
    }
    await eventually('the service worker to be gone', () => context.serviceWorkers().length === 0);
    recorder.add('pages left', context.pages().length - pageCountBefore);
    stopListening();
    await createdContext?.close();
    return () => recorder.tracks;
  }

  close(): Promise<void> {
    return this.#browser.close();
  }

  async #open(cell: Cell, urls: readonly string[], context: BrowserContext, base: PlaywrightPage): Promise<void> {
    if (opensByScript(cell)) {
      for (const url of urls) await base.evaluate(windowOpenScript(url, cell));
      return;
    }
    if (cell.way === 'page') {
      const openedPages = await Promise.all(urls.map(() => context.newPage()));
      await Promise.all(openedPages.map((page, n) => page.goto(urls[n] ?? '')));
      return;
    }
    const channel = await context.newCDPSession(base);
    const { targetInfo } = await channel.send('Target.getTargetInfo');
    await channel.detach();
    const { browserContextId } = targetInfo;
    const contextParams = cell.ownContext && browserContextId !== undefined ? { browserContextId } : {};
    const root = await this.#browser.newBrowserCDPSession();
    await Promise.all(urls.map(url => root.send('Target.createTarget', { url, newWindow: true, ...contextParams })));
    await root.detach();
  }
}

/** Records events of the context and its pages until the returned function is called. */
function listen(context: BrowserContext, cell: Cell, recorder: TrackRecorder): () => void {
  const onRequest = (one: Request, ...details: readonly unknown[]): void => {
    if (isRecorded(one.url())) recorder.add(`request ${pathOf(one.url())}`, ...details);
  };
  const listeners = {
    page: (page: PlaywrightPage) => {
      recorder.add('pages', 'page');
      page.on('close', () => recorder.add(`life ${trackNameOf(page.url())}`, 'close'));
      page.on('crash', () => recorder.add(`life ${trackNameOf(page.url())}`, 'crash'));
      if (cell.way !== 'page') return; // the page may have loaded before Playwright reports it
      page.on('domcontentloaded', () => recorder.add(`life ${trackNameOf(page.url())}`, 'domcontentloaded'));
      page.on('load', () => recorder.add(`life ${trackNameOf(page.url())}`, 'load'));
    },
    serviceworker: () => recorder.add('workers', 'worker'),
    console: (message: { type(): string; text(): string; location(): { url: string; lineNumber: number } }) => {
      const { url, lineNumber } = message.location();
      recorder.add(`console ${trackNameOf(url)}`, message.type(), lineNumber, message.text());
    },
    weberror: (error: { error(): Error }) => recorder.add('errors', error.error().message),
    request: (one: Request) =>
      onRequest(one, 'request', one.method(), one.resourceType(), one.isNavigationRequest(), one.headers()),
    response: (one: { request(): Request; status(): number; fromServiceWorker(): boolean }) =>
      onRequest(one.request(), 'response', one.status(), one.fromServiceWorker()),
    requestfinished: (one: Request) => onRequest(one, 'finished'),
    requestfailed: (one: Request) => onRequest(one, 'failed', one.failure()?.errorText),
  };
  context.on('page', listeners.page);
  context.on('serviceworker', listeners.serviceworker);
  context.on('console', listeners.console);
  context.on('weberror', listeners.weberror);
  context.on('request', listeners.request);
  context.on('response', listeners.response);
  context.on('requestfinished', listeners.requestfinished);
  context.on('requestfailed', listeners.requestfailed);
  return () => {
    context.off('page', listeners.page);
    context.off('serviceworker', listeners.serviceworker);
    context.off('console', listeners.console);
    context.off('weberror', listeners.weberror);
    context.off('request', listeners.request);
    context.off('response', listeners.response);
    context.off('requestfinished', listeners.requestfinished);
    context.off('requestfailed', listeners.requestfailed);
  };
}
