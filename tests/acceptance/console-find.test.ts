// Finding things in the console: the command palette, the list of sessions with titles, selections and columns, links
// to a moment of a replay, and the filters for logs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import {
  DESKTOP,
  DESKTOP_DARK,
  ensureConsoleBuilt,
  findConsoleLink,
  PHONE,
  visitSessions,
  type WatchedPage,
} from '../harness/console.ts';
import { openPages } from '../harness/pages.ts';
import { waitForPlaylist } from '../harness/recordings.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

await ensureConsoleBuilt();
const pages = await openPages({
  '/checkout': `<!doctype html><title>Checkout</title><h1>Checkout</h1><script>
    console.warn('the price has changed'); console.error('the card was refused'); fetch('/missing').then(answer => answer.text());</script>`,
  '/missing': (_, response) => response.writeHead(404).end(),
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '6' } });
const link = findConsoleLink(server);
const list = `${server.url}/console/a/${server.applicationId}/sessions`;

async function visit(session: CreatedSession, ...urls: readonly string[]): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const context = browser.contexts()[0];
  for (const [at, url] of urls.entries()) {
    const page = at === 0 ? context?.pages()[0] : await context?.newPage();
    await page?.goto(url, { waitUntil: 'networkidle' });
    // Keeps each page in front for a second, so that the recording shows it.
    await page?.waitForTimeout(1_000);
  }
  await browser.close();
}

/**
 * Opens each address in a new tab, which hides the previous one. Playwright is not used, because all of its pages count
 * as visible.
 */
async function openTabs(session: CreatedSession, ...urls: readonly string[]): Promise<void> {
  const browser = await puppeteer.connect({ browserWSEndpoint: session.connectUrl, defaultViewport: null });
  for (const [at, url] of urls.entries()) {
    const page = at === 0 ? (await browser.pages())[0] : await browser.newPage();
    await page?.goto(url, { waitUntil: 'networkidle0' });
    // Keeps each page in front for a second, so that the recording shows it.
    await new Promise(resolve => setTimeout(resolve, 1_000));
  }
  await browser.disconnect();
}

const rowOf = (page: Page, { id }: { readonly id: string }) => page.getByRole('link', { name: id });

test('a session can be found by the title of its page, and its row shows the title and the site', () =>
  visitSessions(server, link, DESKTOP, async watchedPage => {
    const { page } = watchedPage;
    const [wanted, other] = [await server.createSession(), await server.createSession()];
    await visit(wanted, `${pages.a}/checkout`);
    await visit(other, `${pages.b}/next`);
    for (const { id } of [wanted, other]) await server.release(id);
    await rowOf(page, other).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('checkout a.test');
    await page.keyboard.press('Enter');
    await rowOf(page, other).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: `Checkout ${wanted.id}` }).waitFor();
    await page
      .getByRole('listitem')
      .filter({ hasText: `a.test:${pages.port}` })
      .waitFor();
    await page.getByLabel('Duration').selectOption('Over an hour');
    await page.getByText('No matching sessions').waitFor();
    assert.match(page.url(), /lasted=hour/);
  }));

test('the command palette can open pages and sessions by keyboard alone', () =>
  visitSessions(server, link, DESKTOP, async watchedPage => {
    const { page } = watchedPage;
    const session = await server.createSession({ userMetadata: { customer: 'palette-42' } });
    await server.release(session.id);
    const field = page.getByRole('combobox', { name: 'Page, session id or words' });
    const go = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k');
      await field.waitFor();
      await page.keyboard.type(text);
    };
    await go('agent');
    await watchedPage.assertAccessible();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Agent keys', exact: true }).waitFor();
    await go('palette-42');
    await page
      .getByRole('option', { selected: true })
      .filter({ hasText: session.id.slice(-6) })
      .waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('Released by a caller').waitFor();
    await go('new session');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New session', exact: true }).waitFor();
    await go(session.id);
    await page
      .getByRole('option', { selected: true })
      .filter({ hasText: session.id.slice(-6) })
      .waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('Released by a caller').waitFor();
    await go('no such place at all');
    await page.getByText('Nothing found').waitFor();
    await page.keyboard.press('Escape');
    await field.waitFor({ state: 'detached' });
  }));

test('on a phone, a button opens the command palette, and the palette opens pages of the console', () =>
  visitSessions(server, link, PHONE, async watchedPage => {
    const { page } = watchedPage;
    await page.getByRole('button', { name: 'Go to' }).click();
    await watchedPage.assertAccessible();
    await page.getByRole('option', { name: /Audit log/ }).click();
    await page.getByRole('heading', { name: 'Audit log', exact: true }).waitFor();
  }));

test('selected sessions are released together, and other sessions keep running', () =>
  visitSessions(server, link, DESKTOP_DARK, async watchedPage => {
    const { page } = watchedPage;
    const options = { keepAlive: true };
    const createdSessions = [];
    for (let n = 0; n < 3; n += 1) createdSessions.push(await server.createSession(options));
    const [first, second, kept] = createdSessions;
    assert.ok(first && second && kept);
    for (const { id } of [first, second]) await page.getByRole('checkbox', { name: id }).check();
    await page.getByText('2 sessions selected').waitFor();
    await watchedPage.assertAccessible();
    await page.getByRole('region', { name: 'Selected sessions' }).getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await page.getByRole('region', { name: 'Selected sessions' }).waitFor({ state: 'detached' });
    for (const { id } of [first, second]) {
      const readEndReason = async () => (await server.read(id)).endReason;
      assert.equal(
        await eventually('the end of a selected session', readEndReason, reason => reason !== undefined),
        'released',
      );
    }
    assert.equal((await server.read(kept.id)).status, 'RUNNING');
    await page.getByRole('checkbox', { name: 'Select the 1 running sessions in the list' }).check();
    await page.getByText('1 session selected').waitFor();
    await server.release(kept.id);
    await page.getByText('1 session selected').waitFor({ state: 'detached' });
  }));

test('hidden columns stay hidden after a reload', () =>
  visitSessions(server, link, DESKTOP, async watchedPage => {
    const { page } = watchedPage;
    const heading = page.getByText('Duration', { exact: true });
    await heading.first().waitFor();
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'End reason' }).waitFor();
    await watchedPage.assertAccessible();
    await page.getByRole('checkbox', { name: 'End reason' }).uncheck();
    await page.keyboard.press('Escape');
    const releasedLabels = page.getByRole('list', { name: 'Sessions' }).getByText('Released by a caller');
    await releasedLabels.first().waitFor({ state: 'detached' });
    await page.reload();
    await page
      .getByRole('checkbox', { name: /running sessions/ })
      .or(page.getByRole('listitem').first())
      .first()
      .waitFor();
    assert.equal(await releasedLabels.count(), 0);
  }));

/**
 * The time to seek to, in seconds from the start of the replay of the second page. That page is in front for longer
 * than this.
 */
const SEEK_SECONDS = 0.6;
/** The distance that one press of an arrow key moves on the timeline, in seconds. */
const STEP_SECONDS = 0.1;
const PRESSES_MAX = 100;

const at = (watchedPage: WatchedPage, id: string, search: string): Promise<unknown> =>
  watchedPage.page.goto(`${list}/${id}?${search}`);

test('one timeline covers the replays of all pages, and a copied link opens the replay at the same position', () =>
  visitSessions(server, link, DESKTOP, async watchedPage => {
    const { page } = watchedPage;
    const session = await server.createSession({ keepAlive: true });
    await openTabs(session, `${pages.a}/checkout`, `${pages.b}/next`);
    await server.release(session.id);
    // The timeline grows until the whole recording is encoded, so the test waits for that first.
    for (const pageId of ['0', '1'])
      await waitForPlaylist(server, session.id, pageId, text => text.includes('ENDLIST'));
    await at(watchedPage, session.id, 'tab=replay');
    const slider = page.getByRole('slider', { name: 'Time' });
    await slider.waitFor();
    const [first, second] = [
      page.getByRole('button', { name: /^a\.test.*checkout/ }),
      page.getByRole('button', { name: /^b\.test.*next/ }),
    ];
    assert.equal(await first.getAttribute('aria-pressed'), 'true');
    await second.click();
    const readSlider = async (): Promise<number> => Number(await slider.inputValue());
    await eventually('the time when the second page was opened', readSlider, seconds => seconds > 0.2);
    const openedSeconds = await readSlider();
    // A player that is still seeking to the beginning of its page finishes that seek first. The test therefore repeats
    // its own seek, as a person would do.
    const seek = async (): Promise<number> => {
      await page.locator('video').evaluate((video, moment) => {
        const isThere = Reflect.get(video, 'seeking') || Math.abs(Reflect.get(video, 'currentTime') - moment) < 0.05;
        if (!isThere) Reflect.set(video, 'currentTime', moment);
      }, SEEK_SECONDS);
      return readSlider();
    };
    await eventually(
      'the moment on the timeline',
      seek,
      seconds => Math.abs(seconds - openedSeconds - SEEK_SECONDS) < 0.3,
    );
    await page.getByRole('button', { name: 'Copy link at this time' }).click();
    const copiedLink = await page.evaluate<string>('navigator.clipboard.readText()');
    const { searchParams } = new URL(copiedLink);
    assert.deepEqual([searchParams.get('tab'), searchParams.get('page')], ['replay', '1']);
    const seconds = Number(searchParams.get('at'));
    assert.ok(Math.abs(seconds - SEEK_SECONDS) < 0.2, copiedLink);
    await page.goto('about:blank');
    await page.goto(copiedLink);
    await slider.waitFor();
    assert.equal(await second.getAttribute('aria-pressed'), 'true');
    const readPlayerTime = (): Promise<number> =>
      page.locator('video').evaluate(video => Reflect.get(video, 'currentTime'));
    await eventually(
      'the timeline to show the time of the link',
      readPlayerTime,
      time => Math.abs(time - seconds) < 0.3,
    );
    await slider.focus();
    await page.keyboard.press('Home');
    await eventually(
      'the first page at the beginning',
      async () => (await first.getAttribute('aria-pressed')) === 'true',
    );
    // Each press continues from where the previous one ended, even when it switches to another page whose player is
    // still loading.
    const isSecondSelected = async (): Promise<boolean> => (await second.getAttribute('aria-pressed')) === 'true';
    for (let n = 0; n < PRESSES_MAX && !(await isSecondSelected()); n += 1) await page.keyboard.press('ArrowRight');
    const secondsAfterSwitch = await readSlider();
    for (let n = 0; n < 3; n += 1) await page.keyboard.press('ArrowRight');
    await eventually(
      'the timeline to move by three steps',
      readSlider,
      seconds => Math.abs(seconds - secondsAfterSwitch - 3 * STEP_SECONDS) < STEP_SECONDS / 2,
    );
    const moment = secondsAfterSwitch + 3 * STEP_SECONDS - openedSeconds;
    await eventually(
      'the player to show the same moment',
      readPlayerTime,
      time => Math.abs(time - moment) < STEP_SECONDS,
    );
    assert.ok(Math.abs((await readSlider()) - secondsAfterSwitch - 3 * STEP_SECONDS) < STEP_SECONDS / 2);
    await page.keyboard.press('Home');
    await eventually('the position to be the beginning', readSlider, seconds => seconds < STEP_SECONDS);
  }));

test('the log of a session can be filtered by level and page and saved as a file, and its requests can be filtered by status', () =>
  visitSessions(server, link, DESKTOP, async watchedPage => {
    const { page } = watchedPage;
    const session = await server.createSession({ keepAlive: true });
    await visit(session, `${pages.a}/checkout`, `${pages.b}/next`);
    await server.release(session.id);
    // Limits a list page to two entries, so that the log has several list pages. The console must read all list pages
    // of the log of an ended session.
    await page.route('**/logs*', route => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', '2');
      return route.continue({ url: url.href });
    });
    await at(watchedPage, session.id, 'tab=console');
    await page.getByText('the price has changed').waitFor();
    await page.unroute('**/logs*');
    await page.getByLabel('Level').selectOption('Errors');
    await page.getByText('the card was refused').waitFor();
    assert.equal(await page.getByText('the price has changed').count(), 0);
    await watchedPage.assertAccessible();
    await page.getByLabel('Page', { exact: true }).selectOption({ index: 2 });
    await page.getByText('the card was refused').waitFor({ state: 'detached' });
    const whenDownloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Log file' }).click();
    const download = await whenDownloaded;
    assert.equal(download.suggestedFilename(), `${session.id}.ndjson`);
    const entries = readFileSync((await download.path()) ?? '', 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
    assert.ok(entries.some(({ method }) => method === 'Network.requestWillBeSent'));
    await at(watchedPage, session.id, 'tab=network');
    await page.getByRole('button', { name: /200 GET.*checkout/ }).waitFor();
    await page.getByLabel('Status').selectOption('Failed or 4xx, 5xx');
    await page.getByRole('button', { name: /404 GET.*missing/ }).waitFor();
    assert.equal(await page.getByRole('button', { name: /200 GET/ }).count(), 0);
    await page.getByLabel('Filter the requests').fill('nowhere');
    await page.getByText('0 requests').waitFor();
    await watchedPage.assertAccessible();
  }));
