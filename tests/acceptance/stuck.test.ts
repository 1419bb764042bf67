// Pages whose renderer hangs must not prevent other clients from connecting. Clients do not see such a page until it
// responds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import puppeteer, { type Browser as PuppeteerBrowser } from 'puppeteer-core';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { findBusiestRenderer } from '../harness/session-processes.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const CONNECT_TIMEOUT_MS = 30_000;
/**
 * Keeps a renderer busy, so that the test finds it by its processor time. The amount of work is fixed, not the duration,
 * because a busy machine may give a script little processor time in a fixed duration.
 */
const COMPUTE = 'let sum = 0; for (let n = 0; n < 3e8; n++) sum += n; void sum;';

const pages = await openPages();
const server = await startServer({ pages });

const connectPlaywright = ({ connectUrl }: CreatedSession): Promise<Browser> =>
  chromium.connectOverCDP(connectUrl, { timeout: CONNECT_TIMEOUT_MS });

const connectPuppeteer = ({ connectUrl }: CreatedSession): Promise<PuppeteerBrowser> =>
  withTimeLimit(
    'Puppeteer',
    puppeteer.connect({ browserWSEndpoint: connectUrl, defaultViewport: null }),
    CONNECT_TIMEOUT_MS,
  );

const pagesOf = (browser: Browser): Page[] => browser.contexts()[0]?.pages() ?? [];
const urlsOf = (shown: ReadonlyArray<{ url(): string }>): string[] => shown.map(page => page.url()).sort();

/** Waits until the page with this URL is the only one that is not blank, and returns it. */
async function waitForOnlyPage<P extends { url(): string }>(
  readPages: () => P[] | Promise<P[]>,
  url: string,
): Promise<P> {
  // With two hanging renderers on a busy machine, the healthy page may also be slow. The page is then shown later, and
  // clients first get an empty page.
  const readNonBlankPages = async (): Promise<P[]> => (await readPages()).filter(page => page.url() !== 'about:blank');
  await eventually(
    `${url} and nothing else`,
    async () => urlsOf(await readNonBlankPages()),
    urls => urls.join() === url,
  );
  return (await readNonBlankPages())[0] ?? assert.fail(url);
}

function firstPage(browser: Browser): Page {
  const [page] = pagesOf(browser);
  assert.ok(page, 'there is a page');
  return page;
}

/** Opens a new page with this address. Host names differ, so that each page has its own renderer. */
async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await browser.contexts()[0]?.newPage();
  assert.ok(page);
  await page.goto(url);
  return page;
}

/** Starts an endless loop in the renderer. Resolves once the loop is running, with a function that ends it. */
async function loop(page: Page): Promise<() => Promise<unknown>> {
  // Opened first, because a channel opened later would wait for the end of the loop.
  const channel = await page.context().newCDPSession(page);
  const loopStart = page.waitForEvent('console', message => message.text() === 'looping');
  // Rejects when the page closes or the loop is ended.
  page.evaluate("console.log('looping'); for (;;);").catch(() => {});
  await loopStart;
  return () => withTimeLimit('the loop to end', channel.send('Runtime.terminateExecution'));
}

/** Stops the renderer process. Returns a function that resumes the process. */
async function freeze(session: CreatedSession, page: Page): Promise<() => void> {
  const { pid } = await findBusiestRenderer(session.id, () => page.evaluate(COMPUTE));
  process.kill(pid, 'SIGSTOP');
  return () => void process.kill(pid, 'SIGCONT');
}

test('while one renderer is looping and another is stopped, new clients can connect and use the healthy page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const firstBrowser = await connectPlaywright(session);
  await firstPage(firstBrowser).goto(`${pages.url}/`);
  const loopingPage = await openPage(firstBrowser, `${pages.a}/next`);
  const frozenPage = await openPage(firstBrowser, `${pages.b}/next`);
  const thaw = await freeze(session, frozenPage);
  const stopLoop = await loop(loopingPage);

  const secondBrowser = await connectPlaywright(session);
  const healthyPage = await waitForOnlyPage(() => pagesOf(secondBrowser), `${pages.url}/`);
  await healthyPage.click('#next');
  await healthyPage.waitForURL(`${pages.url}/next`);
  assert.equal(await healthyPage.title(), 'Next');

  const thirdBrowser = await connectPuppeteer(session);
  const shownPage = await waitForOnlyPage(() => thirdBrowser.pages(), `${pages.url}/next`);
  assert.equal(await shownPage.title(), 'Next');
  const [ownPage, popup] = await Promise.all([
    thirdBrowser.newPage(),
    secondBrowser.contexts()[0]?.waitForEvent('page'),
  ]);
  await ownPage.goto(`${pages.url}/tall`);
  await popup?.waitForURL(`${pages.url}/tall`);
  await ownPage.close();

  thaw();
  await waitUntilVisible(secondBrowser, thirdBrowser, `${pages.b}/next`);
  await stopLoop();
  await waitUntilVisible(secondBrowser, thirdBrowser, `${pages.a}/next`);
  await server.release(session.id);
});

/** Waits until connected clients see the page again, which happens when the page responds. */
async function waitUntilVisible(playwright: Browser, puppeteer: PuppeteerBrowser, url: string): Promise<void> {
  const hasUrl = (page: { url(): string }): boolean => page.url() === url;
  const playwrightPage = await eventually(`${url} in Playwright`, () => pagesOf(playwright).find(hasUrl));
  assert.equal(await playwrightPage?.title(), 'Next');
  const puppeteerPage = await eventually(`${url} in Puppeteer`, async () => (await puppeteer.pages()).find(hasUrl));
  assert.equal(await puppeteerPage?.title(), 'Next');
}

test('pages that hang are listed as unresponsive, and can be closed by their id', async () => {
  const session = await server.createSession({ keepAlive: true });
  const firstBrowser = await connectPlaywright(session);
  await firstPage(firstBrowser).goto(`${pages.url}/`);
  const loopingPage = await openPage(firstBrowser, `${pages.a}/next`);
  const dialogPage = await openPage(firstBrowser, `${pages.b}/next`);
  const dialog = dialogPage.waitForEvent('dialog'); // The dialog stays open.
  dialogPage.evaluate('alert(1)').catch(() => {}); // Rejects when the page closes.
  await dialog;
  await loop(loopingPage);
  const listPages = async (): Promise<DebugUrls['pages']> =>
    (await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`)).body.pages;
  const listedPages = await listPages();
  assert.deepEqual(
    listedPages.map(({ url, isResponsive }) => [url, isResponsive]).sort(),
    [
      [`${pages.a}/next`, false],
      [`${pages.b}/next`, false],
      [`${pages.url}/`, true],
    ].sort(),
  );
  const cdpClient = await CdpClient.connect(session.connectUrl);
  for (const { id, isResponsive } of listedPages)
    if (!isResponsive) await cdpClient.send('Target.closeTarget', { targetId: id });
  await eventually('both hanging pages to be closed', listPages, left => left.length === 1);
  await cdpClient.close();
  await server.release(session.id);
});

test('a client that connects while every page hangs gets a new page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const firstBrowser = await connectPlaywright(session);
  await firstPage(firstBrowser).goto(`${pages.a}/next`);
  await loop(firstPage(firstBrowser));
  const secondBrowser = await connectPlaywright(session);
  assert.deepEqual(urlsOf(pagesOf(secondBrowser)), ['about:blank']);
  await firstPage(secondBrowser).goto(`${pages.url}/`);
  assert.equal(await firstPage(secondBrowser).title(), 'Home');
  await server.release(session.id);
});

test('a client that connected before a page hung can use the other pages and close the hanging page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const firstBrowser = await connectPlaywright(session);
  const secondBrowser = await connectPlaywright(session);
  await firstPage(firstBrowser).goto(`${pages.url}/`);
  const loopingPage = await openPage(firstBrowser, `${pages.a}/next`);
  const seen = await eventually('the page', () =>
    pagesOf(secondBrowser).find(page => page.url() === loopingPage.url()),
  );
  await loop(loopingPage);
  assert.equal(await firstPage(secondBrowser).title(), 'Home');
  await withTimeLimit(
    'the looping page to be closed',
    seen?.close() ?? Promise.reject(new Error('the client has no looping page')),
  );
  await eventually('the looping page to be gone', () => pagesOf(firstBrowser).length === 1);
  await server.release(session.id);
});
