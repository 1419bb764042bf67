// The Puppeteer driver for the table of clients. It observes only the pages that it opens itself, because a listener on
// another page could be added too late.
import puppeteer, {
  type BrowserContext,
  type HTTPRequest,
  type Browser as PuppeteerBrowser,
  type Page as PuppeteerPage,
  type Target as PuppeteerTarget,
} from 'puppeteer-core';
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

export class PuppeteerDriver implements Driver {
  readonly #browser: PuppeteerBrowser;
  readonly #site: string;

  private constructor(browser: PuppeteerBrowser, site: string) {
    this.#browser = browser;
    this.#site = site;
  }

  static async open(url: string, site: string): Promise<Driver> {
    return new PuppeteerDriver(await puppeteer.connect({ browserWSEndpoint: url, defaultViewport: null }), site);
  }

  async run(cell: Cell): Promise<TracksReader> {
    const recorder = new TrackRecorder();
    const createdContext = cell.ownContext ? await this.#browser.createBrowserContext() : undefined;
    const context = createdContext ?? this.#browser.defaultBrowserContext();
    const earlierTargets = new Set(context.targets());
    const stopListening = listen(context, recorder);
    const base = await context.newPage();
    await base.goto(`${this.#site}/base`);
    await base.waitForFunction(BASE_READY_CONDITION);
    base.on('popup', popup => recorder.add('popups', popup === null));
    const openedTargets = (): PuppeteerTarget[] =>
      context
        .targets()
        .filter(one => one.type() === 'page' && one.url().includes('/cell?') && !earlierTargets.has(one));
    const urls: string[] = [];
    for (const step of stepUrlsOf(this.#site)) {
      urls.push(...step);
      await this.#open(cell, step, base, recorder, createdContext?.id);
      await eventually('the pages of the cell', openedTargets, targets => targets.length === urls.length);
      for (const target of openedTargets()) await (await target.page())?.waitForFunction(READY_CONDITION);
    }
    for (const target of openedTargets()) {
      const page = await target.page();
      if (!page) throw new Error('Puppeteer has no page for the target of a new page');
      const name = trackNameOf(page.url());
      recorder.add(`${name} state`, String(await page.evaluate(STATE_SCRIPT)), page.viewport());
      recorder.add(`${name} opener`, target.opener()?.url().replace(this.#site, '') ?? 'none');
      await page.close();
      recorder.add(`${name} closed`, page.isClosed());
    }
    await base.evaluate(UNREGISTER_WORKERS_SCRIPT);
    const channel = await base.createCDPSession();
    await channel.send('ServiceWorker.enable');
    await channel.send('ServiceWorker.stopAllWorkers');
    await base.close();
    await eventually('every target to be gone', () => context.targets().every(one => earlierTargets.has(one)));
    stopListening();
    await createdContext?.close();
    return () => recorder.tracks;
  }

  async close(): Promise<void> {
    await this.#browser.disconnect();
  }

  async #open(
    cell: Cell,
    urls: readonly string[],
    base: PuppeteerPage,
    recorder: TrackRecorder,
    browserContextId: string | undefined,
  ): Promise<void> {
    if (opensByScript(cell)) {
      for (const url of urls) await base.evaluate(windowOpenScript(url, cell));
      return;
    }
    if (cell.way === 'page') {
      const openedPages = await Promise.all(urls.map(() => base.browserContext().newPage()));
      for (const page of openedPages) observePage(page, recorder);
      await Promise.all(openedPages.map((page, n) => page.goto(urls[n] ?? '')));
      return;
    }
    const root = await this.#browser.target().createCDPSession();
    const contextParams = browserContextId === undefined ? {} : { browserContextId };
    await Promise.all(urls.map(url => root.send('Target.createTarget', { url, newWindow: true, ...contextParams })));
    await root.detach();
  }
}

/** Records events of the context until the returned function is called. */
function listen(context: BrowserContext, recorder: TrackRecorder): () => void {
  const onCreated = (target: PuppeteerTarget): void => recorder.add(`${target.type()} created`, target.type());
  const onDestroyed = (target: PuppeteerTarget): void =>
    recorder.add(`${target.type()} destroyed`, trackNameOf(target.url()));
  context.on('targetcreated', onCreated);
  context.on('targetdestroyed', onDestroyed);
  return () => {
    context.off('targetcreated', onCreated);
    context.off('targetdestroyed', onDestroyed);
  };
}

function observePage(page: PuppeteerPage, recorder: TrackRecorder): void {
  const onRequest = (one: HTTPRequest, ...details: readonly unknown[]): void => {
    if (isRecorded(one.url())) recorder.add(`request ${pathOf(one.url())}`, ...details);
  };
  page.on('console', message => recorder.add(`console ${trackNameOf(page.url())}`, message.type(), message.text()));
  page.on('domcontentloaded', () => recorder.add(`life ${trackNameOf(page.url())}`, 'domcontentloaded'));
  page.on('load', () => recorder.add(`life ${trackNameOf(page.url())}`, 'load'));
  page.on('request', one =>
    onRequest(one, 'request', one.method(), one.resourceType(), one.isNavigationRequest(), one.headers()),
  );
  page.on('response', one => onRequest(one.request(), 'response', one.status(), one.fromServiceWorker()));
  page.on('requestfinished', one => onRequest(one, 'finished'));
  page.on('requestfailed', one => onRequest(one, 'failed', one.failure()?.errorText));
}
