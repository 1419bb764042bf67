// Windows that pages open. A window starts without waiting for a client, but a client that attaches early enough can
// prepare the window.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const ROUNDS = 10;

const pages = await openPages({
  '/early': '<!doctype html><script>document.title = globalThis.put ? "early" : "late"</script>',
});
const server = await startServer({ pages });

test('a page can open windows while a client without auto-attach is connected', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.visit(`${pages.url}/`, page);
  for (const url of ['/next', 'about:blank', '']) {
    const expression = `String(window.open(${JSON.stringify(url)}))`;
    const { result } = await client.send('Runtime.evaluate', { expression, userGesture: true }, page);
    assert.deepEqual(result, { type: 'string', value: '[object Window]' }, url);
  }
  await eventually('the new page to be visited', () => pages.hits('/next') === 1);
  await client.close();
  await server.release(id);
});

test('a page can open a window while no client is connected', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.visit(`${pages.url}/`, page);
  const expression = "void setTimeout(() => { window.open('/tall'); fetch('/after'); }, 300)";
  await client.send('Runtime.evaluate', { expression, userGesture: true }, page);
  await client.close();
  await eventually('the new page to be visited', () => pages.hits('/tall') === 1);
  await eventually('the opener to continue', () => pages.hits('/after') === 1);
  await server.release(id);
});

test('Playwright init scripts run first in a popup, even while another client is connected', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const idle = await CdpClient.connect(connectUrl);
  await idle.attachToPage();
  const browser = await chromium.connectOverCDP(connectUrl);
  const context = browser.contexts()[0];
  const page = context?.pages()[0];
  assert.ok(context && page);
  await context.addInitScript('globalThis.put = true');
  await page.goto(`${pages.url}/`);
  for (let count = 0; count < ROUNDS; count++) {
    const blankPopup: Promise<Page> = page.waitForEvent('popup');
    assert.equal(await page.evaluate("window.open('about:blank').put"), true, 'the init script has already run');
    await blankPopup;
    const earlyPopup: Promise<Page> = page.waitForEvent('popup');
    await page.evaluate("void window.open('/early')");
    await (await earlyPopup).waitForURL(`${pages.url}/early`);
    assert.equal(await (await earlyPopup).title(), 'early');
    for (const popup of [await blankPopup, await earlyPopup]) await popup.close();
  }
  await browser.close();
  await idle.close();
  await server.release(id);
});
