// Tests that recordings hide passwords, by checking decoded pixels. A field that is or was a password field is never
// visible, even if the page shows the password, scrolls, grows, or has the field in a cross-site frame. Everything else
// is visible.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Frame } from '../../server/engines/recorder/hub.ts';
import { Recorder } from '../../server/engines/recorder/recorder.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { SecretTexts } from '../../server/kit/secret-texts.ts';
import { WorkerPool } from '../../server/kit/worker-pool.ts';
import { startBareBrowser } from '../harness/bare-browser.ts';
import { CdpClient } from '../harness/cdp.ts';
import { jailedHelper } from '../harness/helpers.ts';
import { openPages } from '../harness/pages.ts';
import { eventually } from '../harness/until.ts';

/** Fields are magenta, and content that must stay visible is blue. */
const STYLES =
  'input{background:#f0f;border:0;outline:0;width:200px;height:40px;color:#fff} i{display:block;width:300px;height:60px;background:#00f}';
const FIELD = '<input id="p" type="password" value="correct horse">';
const PAGES: Readonly<Record<string, string>> = {
  plain: FIELD,
  scrolled: `<div style="height:500px"></div>${FIELD}<div style="height:4000px"></div>`,
  shadow: `<div id="host"></div><script>host.attachShadow({ mode: 'open' }).innerHTML = '<style>${STYLES}</style>${FIELD.replaceAll('"', '\\"')}';</script>`,
  moved: `<div style="position:relative;left:130px;transform:rotate(20deg) scale(1.5);transform-origin:0 0">${FIELD}</div>`,
};

const html = (body: string): string => `<!doctype html><style>body{margin:20px}${STYLES}</style><i></i>${body}`;
const pages = await openPages(
  Object.fromEntries(Object.entries(PAGES).map(([name, body]) => [`/${name}`, html(body)])),
);
pages.set('/framed', (_, response) => {
  const frameUrl = `http://localhost:${pages.port}/scrolled`;
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(
    html(
      `<div style="height:80px"></div><iframe style="margin-left:90px" width="500" height="640" src="${frameUrl}"></iframe>`,
    ),
  );
});

const bare = await startBareBrowser();
after(() => bare.close());
const folder = mkdtempSync(join(tmpdir(), 'berth-masks-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const doNothing = async (): Promise<void> => {};
const discardingSink = { began: doNothing, keep: doNothing, span: doNothing, endSpans: doNothing, done: doNothing };
const workers = new WorkerPool();
after(() => workers.close());
const recorder = await Recorder.open({
  ...{ folder, sink: discardingSink, workers, clock: systemClock, log: silentLog, confine: jailedHelper },
});
after(() => recorder.close());
const recording = await recorder.record({
  session: 'masks',
  maskKind: 'password',
  secrets: new SecretTexts(),
  reportShortfall: () => {},
});
let firstTargetId: string | undefined;
await bare.browser.observe({
  target: target => {
    firstTargetId ??= target.id;
    if (target.kind === 'iframe') recording.addFrame(target);
    else if (target.id === firstTargetId) recording.recordPage(target, 0, { at: systemClock.now() });
  },
});
const client = await CdpClient.connect(bare.url);
const page = await client.attachToPage();

const EMPTY_JPEG = Buffer.alloc(0);

/** The number of magenta, blue, green and black pixels in a frame. */
function pixelCountsOf(jpeg: Buffer): { magenta: number; blue: number; green: number; black: number } {
  const options = ['-v', 'error', '-f', 'mjpeg', '-i', 'pipe:0', '-pix_fmt', 'rgb24', '-f', 'rawvideo', 'pipe:1'];
  const { stdout } = spawnSync('ffmpeg', options, { input: jpeg, maxBuffer: 64 * 1024 ** 2 });
  const counts = { magenta: 0, blue: 0, green: 0, black: 0 };
  for (let at = 0; at + 2 < stdout.length; at += 3) {
    const [r = 0, g = 0, b = 0] = [stdout[at], stdout[at + 1], stdout[at + 2]];
    if (r > 120 && g < 110 && b > 120) counts.magenta++;
    if (r < 60 && g < 60 && b > 200) counts.blue++;
    if (r < 60 && g > 200 && b < 60) counts.green++;
    if (r < 40 && g < 40 && b < 40) counts.black++;
  }
  return counts;
}

async function collectFrames(work: () => Promise<unknown>): Promise<Frame[]> {
  const hub = await eventually('the page to be recorded', () => recording.hubOf(0));
  const frames: Frame[] = [];
  const firstFrame = hub?.newestFrame;
  const subscription = hub?.watch(frame => void (frame === firstFrame || frames.push(frame)));
  await work();
  // Adds a green mark that does not affect the rest of the page. Once a frame shows the mark, all earlier changes have
  // been recorded.
  await evaluate(
    `document.body.insertAdjacentHTML('beforeend', '<b style="position:fixed;right:0;bottom:0;width:200px;height:100px;background:#0f0"></b>')`,
  );
  await eventually(
    'a frame with the green mark',
    () => pixelCountsOf(frames.at(-1)?.jpeg ?? EMPTY_JPEG).green > 10_000,
  );
  await eventually(
    'the rest of the page to be seen',
    () => pixelCountsOf(frames.at(-1)?.jpeg ?? EMPTY_JPEG).blue > 10_000,
  );
  await subscription?.close();
  return frames;
}

const evaluate = (expression: string): Promise<unknown> => client.evaluate(expression, page);
const fieldScript =
  "const p = document.querySelector('#p') ?? document.querySelector('#host')?.shadowRoot.querySelector('#p')";

for (const name of [...Object.keys(PAGES), 'framed'])
  test(`${name}: password fields are masked before and after the page shows the password, and while the page scrolls`, async () => {
    const frames = await collectFrames(async () => {
      await client.send('Page.navigate', { url: `${pages.url}/${name}` }, page);
      await client.waitForValue('the page to be there', "document.readyState === 'complete'", page);
      await new Promise(resolve => setTimeout(resolve, 500));
      await evaluate(`{ ${fieldScript}; if (p) { p.type = 'text'; p.value += ' battery'; } }`);
      for (let step = 0; step < 12; step++)
        await evaluate(`new Promise(done => { scrollBy(0, 17); requestAnimationFrame(done); })`);
      await evaluate('scrollTo(0, 0)');
    });
    for (const frame of frames)
      assert.equal(pixelCountsOf(frame.jpeg).magenta, 0, `frame of ${frame.at.toISOString()}`);
  });

const POSITIONED_FIELD = '<input id="p" type="password" style="position:absolute;left:101px;top:203px">';
const FIELD_PIXELS = 200 * 40;
/** The masked area includes the JPEG blocks, 8 pixels wide and high, that the field and a margin of one pixel touch. */
const COVERED_PIXELS_MAX = (200 + 16) * (40 + 16);
pages.set('/around', html(POSITIONED_FIELD));

/**
 * Whether only the field is masked. While fields are moving, for example after a navigation, a larger area is masked,
 * and the page is then captured again.
 */
const isTightlyMasked = (frame: Frame | undefined): frame is Frame =>
  frame !== undefined && pixelCountsOf(frame.jpeg).black <= COVERED_PIXELS_MAX;

test('the mask of a field extends at most one JPEG block beyond the field, and does not depend on the text', async () => {
  await client.send('Page.navigate', { url: `${pages.url}/around` }, page);
  await client.waitForValue('the page to be there', "document.readyState === 'complete'", page);
  const hub = await eventually('the page to be recorded', () => recording.hubOf(0));
  const maskedJpegs: Buffer[] = [];
  for (const value of ['', 'i', 'correct horse battery staple', '\u2588'.repeat(40)])
    for (const type of ['password', 'text']) {
      const frameBefore = hub?.newestFrame;
      await evaluate(`{ const p = document.querySelector('#p'); p.type = '${type}'; p.value = '${value}'; }`);
      // The mask hides the change of the value. The width of the `<i>` element therefore shows which frame belongs to
      // this value.
      const mark = maskedJpegs.length + 1;
      await evaluate(`document.querySelector('i').style.width = '${300 + 40 * mark}px'`);
      const frame = await eventually(
        'a frame with the mark',
        () => hub?.newestFrame,
        newest =>
          newest !== frameBefore && isTightlyMasked(newest) && pixelCountsOf(newest.jpeg).blue > (280 + 40 * mark) * 58,
      );
      assert.ok(frame);
      assert.ok(pixelCountsOf(frame.jpeg).black >= FIELD_PIXELS);
      await evaluate("document.querySelector('i').style.width = '300px'");
      const cleanFrame = await eventually(
        'a frame without the mark',
        () => hub?.newestFrame,
        newest => newest !== frame && isTightlyMasked(newest) && pixelCountsOf(newest.jpeg).blue < 305 * 62,
      );
      maskedJpegs.push(cleanFrame?.jpeg ?? EMPTY_JPEG);
    }
  for (const jpeg of maskedJpegs)
    assert.ok(jpeg.equals(maskedJpegs[0] ?? EMPTY_JPEG), 'the masked picture differs by text');
});

test('an unmasked element with the color of the password fields is visible in the recorded frames', async () => {
  await evaluate(
    `document.body.insertAdjacentHTML('afterbegin', '<b style="display:block;background:#f0f;height:30px"></b>')`,
  );
  const hub = recording.hubOf(0);
  await eventually(
    'the field to be visible',
    () => pixelCountsOf(hub?.newestFrame?.jpeg ?? EMPTY_JPEG).magenta > 1_000,
  );
});
