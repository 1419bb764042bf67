import assert from 'node:assert/strict';
import { test } from 'node:test';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import type { UploadResponse } from '../../contract/files.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const pages = await openPages();
const server = await startServer({ pages });

const connect = ({ connectUrl }: CreatedSession): Promise<Browser> =>
  puppeteer.connect({ browserWSEndpoint: connectUrl, defaultViewport: null });

async function withBrowser(work: (browser: Browser, session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession({ keepAlive: true });
  const browser = await connect(session);
  await work(browser, session);
  await browser.disconnect();
  await server.release(session.id);
}

test('Puppeteer can open, read and click the first page', () =>
  withBrowser(async browser => {
    const [page] = await browser.pages();
    assert.ok(page);
    const response = await page.goto(pages.a);
    assert.equal(response?.status(), 200);
    await Promise.all([page.waitForNavigation(), page.click('#next')]);
    assert.equal(await page.title(), 'Next');
    assert.equal(await page.evaluate(() => 6 * 7), 42);
  }));

test('a screenshot shows the pixels of the page', () =>
  withBrowser(async browser => {
    const page = await browser.newPage();
    await page.setViewport({ width: 400, height: 200 });
    await page.goto(`${pages.a}/colours`);
    const png = decodePng(Buffer.from(await page.screenshot()));
    assert.deepEqual(
      [50, 150, 250].map(x => png.colourAt(x, 50)),
      ['#ff0000', '#00ff00', '#0000ff'],
    );
  }));

test('Puppeteer gets popups from window.open and links', () =>
  withBrowser(async browser => {
    const page = await browser.newPage();
    await page.goto(`${pages.a}/popups`);
    for (const opener of ['#open', '#blank']) {
      const popupEvent = new Promise<Page | null>(resolve => page.once('popup', resolve));
      await page.click(opener);
      const popup = await withTimeLimit('the popup', popupEvent);
      await eventually(
        'the popup to load',
        // A command that is sent while the page is being replaced gets no response.
        () => popup?.title().catch(() => ''),
        title => title === 'Next',
      );
      await popup?.close();
      await page.bringToFront();
    }
  }));

test('a client can intercept requests and send its own responses', () =>
  withBrowser(async browser => {
    const page = await browser.newPage();
    await page.setRequestInterception(true);
    page.on('request', request =>
      request.url().endsWith('/next')
        ? request.respond({ contentType: 'text/html', body: '<title>Mine</title>' })
        : request.continue(),
    );
    await page.goto(`${pages.a}/next`);
    assert.equal(await page.title(), 'Mine');
    await page.goto(pages.a);
    assert.equal(await page.title(), 'Home');
  }));

test("Puppeteer's uploadFile chooses an uploaded file by its path in the session", () =>
  withBrowser(async (browser, { id }) => {
    const { body, status, text } = await server.api<UploadResponse>('POST', `/v1/browsers/sessions/${id}/uploads`, {
      ...(await uploadRequest('cv.txt', 'my cv')),
    });
    assert.equal(status, 200, text);
    const page = await browser.newPage();
    await page.goto(pages.a);
    await page.setContent('<input type=file>');
    const input = await page.waitForSelector('input[type=file]');
    assert.ok(input);
    await input.uploadFile(body.filePath);
    assert.equal(await page.evaluate('document.querySelector("input").files[0].text()'), 'my cv');
  }));

test('a browser context has separate cookies, and is removed when it is closed', () =>
  withBrowser(async browser => {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    await page.goto(pages.a);
    await page.evaluate("document.cookie = 'who=me'");
    const outsidePage = await browser.newPage();
    await outsidePage.goto(pages.a);
    assert.equal(await outsidePage.evaluate('document.cookie'), '');
    await context.close();
    assert.equal(browser.browserContexts().length, 1);
  }));

test('a session with keepAlive continues after a client disconnects or closes the browser, and the next client finds the same page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const firstBrowser = await connect(session);
  const [page] = await firstBrowser.pages();
  await page?.goto(`${pages.a}/next`);
  await firstBrowser.disconnect();
  const secondBrowser = await connect(session);
  assert.deepEqual(
    (await secondBrowser.pages()).map(one => one.url()),
    [`${pages.a}/next`],
  );
  await secondBrowser.close();
  const thirdBrowser = await connect(session);
  assert.deepEqual(
    (await thirdBrowser.pages()).map(one => one.url()),
    [`${pages.a}/next`],
  );
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  await thirdBrowser.disconnect();
  await server.release(session.id);
});

test('closing the browser ends the session', async () => {
  const session = await server.createSession();
  await (await connect(session)).close();
  const endedSession = await server.waitUntilEnded(session.id);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'browser_closed']);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
