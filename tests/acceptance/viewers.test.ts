// Many viewers of one session: all see the same frames, and a slow viewer delays neither the others nor the recorder.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import { colourOf, framesOf, isSimilarColour } from '../harness/film.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { openPages } from '../harness/pages.ts';
import { fetchFilm, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { openSlowLink } from '../harness/slow-link.ts';
import { eventually } from '../harness/until.ts';

const COLOURS = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [255, 255, 0],
  [0, 255, 255],
] as const;
const MOVE_COUNT = 3_000;
const VIEWERS_MAX = 100;
const SLOW_BITS_PER_SECOND = 200_000;
/**
 * The minimum size of a frame that shows the text page. Sending such a frame at `SLOW_BITS_PER_SECOND` takes about half
 * a second.
 */
const TEXT_FRAME_BYTES_MIN = 12_000;

const pages = await openPages({
  '/plain': '<!doctype html><title>Plain</title><style>html{background:#000}</style>',
  '/words': `<!doctype html><title>Words</title><style>html{background:#000;color:#888}p{margin:0 0 400px}</style><p>${'words on a page '.repeat(24)}</p>`,
  '/busy': `<!doctype html><title>Busy</title><script>
    globalThis.moves = 0; globalThis.pressed = [];
// Handling a move takes so long that the page is the bottleneck, even on a busy machine.
    addEventListener('mousemove', () => { moves++; const until = performance.now() + 30; while (performance.now() < until); });
    addEventListener('mousedown', ({ clientX }) => pressed.push(clientX));
  </script>`,
});
const server = await startServer({ pages });

async function openPage(
  path: string,
  browserSettings: object = {},
): Promise<{ id: string; browser: Browser; page: Page; url: string }> {
  const { id, connectUrl } = await server.createSession({ keepAlive: true, browserSettings });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(pages.url + path);
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`);
  return { id, browser, page, url: body.debuggerUrl };
}

/** Paints the page, and waits until the viewer gets the frame. */
async function paintFor(viewer: LiveViewer, page: Page, colour: readonly number[]): Promise<void> {
  await page.evaluate(`document.documentElement.style.background = 'rgb(${colour})'`);
  await eventually(
    `a picture in ${colour}`,
    () => viewer.newestFrame && isSimilarColour(colourOf(viewer.newestFrame.jpeg), colour),
  );
}

const seesSameFrame = (viewer: LiveViewer, other: LiveViewer): boolean =>
  viewer.newestFrame !== undefined &&
  other.newestFrame !== undefined &&
  viewer.newestFrame.jpeg.equals(other.newestFrame.jpeg);

/** Asserts that the recording shows all colors in order. */
async function assertFilmShowsColours(id: string): Promise<void> {
  const playlist = await waitForPlaylist(server, id, '0', text => text.includes('ENDLIST'));
  // Segments from before the page had its final size have an earlier #EXT-X-MAP.
  const frames = framesOf(await fetchFilm(playlist.slice(playlist.lastIndexOf('#EXT-X-MAP'))));
  const frameIndexes = COLOURS.map(colour => frames.findIndex(frame => isSimilarColour(frame.colour, colour)));
  assert.ok(
    frameIndexes.every((at, index) => at > (frameIndexes[index - 1] ?? -1)),
    JSON.stringify({ times: frameIndexes, frames }),
  );
}

test('ten viewers see the same frames of a page', async () => {
  const { id, browser, page, url } = await openPage('/plain');
  const viewers = await Promise.all(Array.from({ length: 10 }, () => LiveViewer.open(url)));
  const [first] = viewers;
  assert.ok(first);
  await eventually('a frame for each viewer', () => viewers.every(viewer => viewer.frameCount > 0));
  for (const colour of COLOURS) {
    await paintFor(first, page, colour);
    await eventually('the same picture for all viewers', () => viewers.every(viewer => seesSameFrame(viewer, first)));
  }
  for (const viewer of viewers) await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a hundred viewers can watch a session, and another viewer is refused until a viewer leaves', async () => {
  const { id, browser, url } = await openPage('/plain');
  const viewers = await Promise.all(Array.from({ length: VIEWERS_MAX }, () => LiveViewer.open(url)));
  await assert.rejects(LiveViewer.open(url), /429/);
  await viewers.pop()?.close();
  const admittedViewer = await eventually('a viewer to be admitted', () => LiveViewer.open(url).catch(() => undefined));
  for (const viewer of [...viewers, ...(admittedViewer ? [admittedViewer] : [])]) await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a viewer that stops reading delays neither the other viewers nor the recording, and gets the latest frame afterwards', async () => {
  const { id, browser, page, url } = await openPage('/plain');
  const [fastViewer, slowViewer] = [await LiveViewer.open(url), await LiveViewer.open(url)];
  await eventually('a frame for both viewers', () => fastViewer.frameCount > 0 && slowViewer.frameCount > 0);
  slowViewer.stall();
  const framesBefore = slowViewer.frameCount;
  for (const colour of COLOURS) {
    await paintFor(fastViewer, page, colour);
  }
  slowViewer.resume();
  await eventually('the slow viewer to get the newest picture', () => seesSameFrame(slowViewer, fastViewer));
  const missedFrames = COLOURS.length - (slowViewer.frameCount - framesBefore);
  assert.ok(
    missedFrames >= COLOURS.length - 2,
    `one that was on its way, and the newest: it got ${slowViewer.frameCount - framesBefore}`,
  );
  for (const viewer of [fastViewer, slowViewer]) await viewer.close();
  await browser.close();
  await server.release(id);
  await assertFilmShowsColours(id);
});

test('a viewer with a 200 kbit/s connection skips to the latest frame, and delays neither the other viewers nor the recording', async () => {
  const { id, browser, page, url } = await openPage('/words');
  const slowLink = await openSlowLink(Number(new URL(server.url).port), SLOW_BITS_PER_SECOND);
  const [fastViewer, slowViewer] = [await LiveViewer.open(url), await LiveViewer.open(slowLink.urlThrough(url))];
  const size = await eventually(
    'a picture of the words for both',
    () => Math.min(...[fastViewer, slowViewer].map(viewer => viewer.newestFrame?.jpeg.length ?? 0)),
    bytes => bytes > TEXT_FRAME_BYTES_MIN,
  );
  for (const colour of COLOURS) await paintFor(fastViewer, page, colour);
  const [framesBefore, bytesBefore] = [slowViewer.frameCount, slowLink.relayedBytes];
  await eventually('the slow viewer to see the newest frame', () => seesSameFrame(slowViewer, fastViewer));
  const more = { frames: slowViewer.frameCount - framesBefore, bytes: slowLink.relayedBytes - bytesBefore };
  // At most two frames are sent: the one in flight, and the newest one.
  assert.ok(more.frames <= 2 && more.bytes < 3 * size, `frames were buffered: ${JSON.stringify({ ...more, size })}`);
  for (const viewer of [fastViewer, slowViewer]) await viewer.close();
  slowLink.close();
  await browser.close();
  await server.release(id);
  await assertFilmShowsColours(id);
});

test('a viewer does not change the viewport size or the emulated media that the agent has set', async () => {
  const { id, browser, page, url } = await openPage('/plain', { recordSession: false, logSession: false });
  await page.setViewportSize({ width: 640, height: 480 });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const mediaExpression =
    "[innerWidth, matchMedia('print').matches, matchMedia('(prefers-color-scheme: dark)').matches]";
  const expectedValues = [640, true, true];
  assert.deepEqual(await page.evaluate(mediaExpression), expectedValues);
  for (let n = 0; n < 2; n++) {
    const viewer = await LiveViewer.open(url);
    await eventually('a frame for the viewer', () => viewer.frameCount > 0);
    assert.deepEqual(await page.evaluate(mediaExpression), expectedValues, 'meanwhile');
    const disconnectsBefore = server.log().filter(line => line.includes('live.left')).length;
    await viewer.close();
    await eventually(
      'the viewer to be disconnected',
      () => server.log().filter(line => line.includes('live.left')).length > disconnectsBefore,
    );
    assert.deepEqual(await page.evaluate(mediaExpression), expectedValues, 'afterwards');
  }
  await browser.close();
  await server.release(id);
});

test('only a few of many mouse moves are sent to a busy page, and the press that follows is at the right position', async () => {
  const { id, browser, page, url } = await openPage('/busy');
  const viewer = await LiveViewer.open(url);
  await eventually('a frame for the viewer', () => viewer.frameCount > 0);
  await viewer.takeControl();
  const commonFields = { y: 100, modifiers: 0 };
  for (let n = 0; n < MOVE_COUNT; n++)
    viewer.sendInput({
      type: 'mouse',
      action: 'move',
      x: n % 1000,
      button: 'none',
      buttons: 0,
      clicks: 0,
      ...commonFields,
    });
  viewer.sendInput({ type: 'mouse', action: 'move', x: 777, button: 'none', buttons: 0, clicks: 0, ...commonFields });
  viewer.click(777, 100);
  await eventually('the click', async () => JSON.stringify(await page.evaluate('pressed')) === '[777]');
  const moves = await page.evaluate<number>('moves');
  assert.ok(moves < MOVE_COUNT / 10, `the page got ${moves} moves`);
  await viewer.close();
  await browser.close();
  await server.release(id);
});
