// Text in a password field in the live view. Only the person in control gets frames without masks, and only while in
// control.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** Only the field is magenta. Its text is visible, which is the worst case. */
const pages = await openPages({
  '/secret': `<!doctype html><title>Secret</title><style>body{margin:0}input{position:absolute;left:64px;top:64px;width:320px;height:64px;background:#f0f;border:0}</style>
    <input id="p" type="password" value="correct horse"><script>setTimeout(() => { p.type = 'text' }, 100)</script>`,
});
const server = await startServer({ pages });

const MAGENTA_PIXELS_MIN = 15_000;
/** The maximum number of pages per session that are recorded at the same time. */
const PAGES_AT_ONCE_MAX = 64;

function countMagentaPixels(jpeg: Buffer | undefined): number {
  if (!jpeg) return 0;
  const options = ['-v', 'error', '-f', 'mjpeg', '-i', 'pipe:0', '-pix_fmt', 'rgb24', '-f', 'rawvideo', 'pipe:1'];
  const { stdout } = spawnSync('ffmpeg', options, { input: jpeg, maxBuffer: 64 * 1024 ** 2 });
  let pixelCount = 0;
  for (let at = 0; at + 2 < stdout.length; at += 3)
    if ((stdout[at] ?? 0) > 150 && (stdout[at + 1] ?? 255) < 90 && (stdout[at + 2] ?? 0) > 150) pixelCount++;
  return pixelCount;
}

const seesField = (viewer: LiveViewer): boolean => countMagentaPixels(viewer.newestFrame?.jpeg) > MAGENTA_PIXELS_MIN;
const isMasked = (viewer: LiveViewer): boolean =>
  viewer.frameCount > 0 && countMagentaPixels(viewer.newestFrame?.jpeg) === 0;

async function openSecretPage(query = '') {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.url}/secret`);
  await page.waitForSelector('#p[type=text]');
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`);
  return { id, browser, page, url: body.debuggerUrl };
}

/** Changes another part of the page, so that each viewer gets a new frame. */
const changePage = (page: Page, step: number): Promise<unknown> =>
  page.evaluate(`document.body.style.background = 'rgb(${200 - step}, 255, 255)'`);

test('only the viewer in control sees the unmasked field, until control is given back', async () => {
  const { id, browser, page, url } = await openSecretPage();
  const [personViewer, otherViewer] = [await LiveViewer.open(url), await LiveViewer.open(url)];
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug?readOnly=true`);
  const readOnlyViewer = await LiveViewer.open(body.debuggerUrl);
  const viewers = [personViewer, otherViewer, readOnlyViewer];
  for (const viewer of viewers) await eventually('a masked picture', () => isMasked(viewer));

  await personViewer.takeControl();
  await eventually('the person in control to see the field', () => seesField(personViewer));
  readOnlyViewer.send({ type: 'take' });
  for (const [step, viewer] of [otherViewer, readOnlyViewer].entries()) {
    const framesBefore = viewer.frameCount;
    await changePage(page, step);
    await eventually('another picture', () => viewer.frameCount > framesBefore);
    assert.ok(isMasked(viewer));
  }

  await personViewer.giveControl();
  await eventually('a masked picture after control was given back, although the page has not changed', () =>
    isMasked(personViewer),
  );
  for (const viewer of viewers) await viewer.close();
  const pictureResponse = await fetch(`${server.url}/v1/browsers/sessions/${id}/picture`, {
    headers: { 'x-bb-api-key': server.key },
  });
  assert.equal(pictureResponse.status, 200);
  assert.equal(countMagentaPixels(Buffer.from(await pictureResponse.arrayBuffer())), 0);
  await browser.close();
  await server.release(id);
});

test('a page that loaded in a background tab is shown with masks', async () => {
  const { id, browser, page, url } = await openSecretPage();
  const backgroundPage = await page.context().newPage();
  await page.bringToFront();
  await backgroundPage.goto(`${pages.url}/secret`);
  await backgroundPage.waitForSelector('#p[type=text]', { state: 'attached' });
  await page.bringToFront();
  const viewer = await LiveViewer.open(url);
  const tab = await eventually('the tab in the background', () =>
    viewer.tabs.find(one => viewer.page !== '' && one.page !== viewer.page),
  );
  assert.ok(tab);
  const framesBefore = viewer.frameCount;
  viewer.send({ type: 'watch', page: tab.page });
  await eventually(
    'a picture of the tab',
    () => viewer.newestFrame?.head.page === tab.page && viewer.frameCount > framesBefore,
  );
  assert.ok(isMasked(viewer));
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a page beyond the limit of recorded pages is black for viewers without control, and a message gives the reason', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  const open = (url: string) =>
    client.send('Runtime.evaluate', { expression: `void open('${url}')`, userGesture: true }, channel);
  for (let count = 1; count < PAGES_AT_ONCE_MAX; count++) await open('about:blank');
  await open(`${pages.url}/secret`);
  const openViewer = async (query: string): Promise<LiveViewer> => {
    const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`);
    const viewer = await LiveViewer.open(body.debuggerUrl);
    const tab = await eventually('the tab', () => viewer.tabs.find(({ title }) => title === 'Secret'));
    viewer.send({ type: 'watch', page: tab?.page });
    await eventually('a picture', () => viewer.newestFrame?.head.page === tab?.page);
    return viewer;
  };
  const readOnlyViewer = await openViewer('?readOnly=true');
  assert.match(readOnlyViewer.last('refused')?.why ?? '', /is not known/);
  const personViewer = await openViewer('');
  await personViewer.takeControl();
  await eventually('the person in control to see the page', () => seesField(personViewer));
  assert.ok(isMasked(readOnlyViewer));
  for (const viewer of [readOnlyViewer, personViewer]) await viewer.close();
  await client.close();
  await server.release(id);
});
