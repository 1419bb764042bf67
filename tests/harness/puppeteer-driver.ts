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
  BASE_READY,
  type Cell,
  counts,
  type Driver,
  Notes,
  nameOf,
  opening,
  opensItself,
  pathOf,
  READY,
  type Seen,
  STATE,
  stepsOf,
  UNREGISTER,
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

  async run(cell: Cell): Promise<Seen> {
    const notes = new Notes();
    const own = cell.ownContext ? await this.#browser.createBrowserContext() : undefined;
    const context = own ?? this.#browser.defaultBrowserContext();
    const earlier = new Set(context.targets());
    const deafen = listen(context, notes);
    const base = await context.newPage();
    await base.goto(`${this.#site}/base`);
    await base.waitForFunction(BASE_READY);
    base.on('popup', popup => notes.add('popups', popup === null));
    const opened = (): PuppeteerTarget[] =>
      context.targets().filter(one => one.type() === 'page' && one.url().includes('/cell?') && !earlier.has(one));
    const urls: string[] = [];
    for (const step of stepsOf(this.#site)) {
      urls.push(...step);
      await this.#open(cell, step, base, notes, own?.id);
      await eventually('the pages of the cell', opened, targets => targets.length === urls.length);
      for (const target of opened()) await (await target.page())?.waitForFunction(READY);
    }
    for (const target of opened()) {
      const page = await target.page();
      if (!page) throw new Error('the target of a page has no page');
      const name = nameOf(page.url());
      notes.add(`${name} state`, String(await page.evaluate(STATE)), page.viewport());
      notes.add(`${name} opener`, target.opener()?.url().replace(this.#site, '') ?? 'none');
      await page.close();
      notes.add(`${name} closed`, page.isClosed());
    }
    await base.evaluate(UNREGISTER);
    const session = await base.createCDPSession();
    await session.send('ServiceWorker.enable');
    await session.send('ServiceWorker.stopAllWorkers');
    await base.close();
    await eventually('every target to be gone', () => context.targets().every(one => earlier.has(one)));
    deafen();
    await own?.close();
    return () => notes.tracks;
  }

  async close(): Promise<void> {
    await this.#browser.disconnect();
  }

  async #open(
    cell: Cell,
    urls: readonly string[],
    base: PuppeteerPage,
    notes: Notes,
    browserContextId: string | undefined,
  ): Promise<void> {
    if (opensItself(cell)) {
      for (const url of urls) await base.evaluate(opening(url, cell));
      return;
    }
    if (cell.way === 'page') {
      const opened = await Promise.all(urls.map(() => base.browserContext().newPage()));
      for (const page of opened) hear(page, notes);
      await Promise.all(opened.map((page, n) => page.goto(urls[n] ?? '')));
      return;
    }
    const root = await this.#browser.target().createCDPSession();
    const own = browserContextId === undefined ? {} : { browserContextId };
    await Promise.all(urls.map(url => root.send('Target.createTarget', { url, newWindow: true, ...own })));
    await root.detach();
  }
}

/** Listens until the returned function is called. */
function listen(context: BrowserContext, notes: Notes): () => void {
  const created = (target: PuppeteerTarget): void => notes.add(`${target.type()} created`, target.type());
  const destroyed = (target: PuppeteerTarget): void => notes.add(`${target.type()} destroyed`, nameOf(target.url()));
  context.on('targetcreated', created);
  context.on('targetdestroyed', destroyed);
  return () => {
    context.off('targetcreated', created);
    context.off('targetdestroyed', destroyed);
  };
}

function hear(page: PuppeteerPage, notes: Notes): void {
  const onRequest = (one: HTTPRequest, ...seen: readonly unknown[]): void => {
    if (counts(one.url())) notes.add(`request ${pathOf(one.url())}`, ...seen);
  };
  page.on('console', message => notes.add(`console ${nameOf(page.url())}`, message.type(), message.text()));
  page.on('domcontentloaded', () => notes.add(`life ${nameOf(page.url())}`, 'domcontentloaded'));
  page.on('load', () => notes.add(`life ${nameOf(page.url())}`, 'load'));
  page.on('request', one =>
    onRequest(one, 'request', one.method(), one.resourceType(), one.isNavigationRequest(), one.headers()),
  );
  page.on('response', one => onRequest(one.request(), 'response', one.status(), one.fromServiceWorker()));
  page.on('requestfinished', one => onRequest(one, 'finished'));
  page.on('requestfailed', one => onRequest(one, 'failed', one.failure()?.errorText));
}
