// Recordings survive what kills: the browser, the server, both, and a missing encoder. Every tab's file decodes whole, is as
// long as the tab lived, and shows what was painted.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CdpClient } from '../harness/cdp.ts';
import { durationOf, framesOf } from '../harness/film.ts';
import { killBox } from '../harness/kill-box.ts';
import { openPages } from '../harness/pages.ts';
import { askForFiles, fetchFilm, filesOf, playlistWhen, replaysOf } from '../harness/recordings.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const LIVED_MS = 9_000;
/** A recording begins with the first picture, which comes late where twelve windows open at once on a busy machine. */
const LATE_MS = 5_000;
const TOLERANCE_MS = 1_000;
const STORED_MS = 90_000;
const BLACK = 16;

const pages = await openPages({
  '/static': '<!doctype html><style>html{background:rgb(200,100,50)}</style>',
  '/canvas': `<!doctype html><style>*{margin:0}</style><canvas width=1280 height=720></canvas><script>
    const context = document.querySelector('canvas').getContext('2d');
    let n = 0;
    setInterval(() => { context.fillStyle = 'hsl(' + (n += 9) + ',90%,60%)'; context.fillRect(0, 0, 1280, 720); }, 300);
  </script>`,
  '/webgl': `<!doctype html><style>*{margin:0}html{background:#777}</style><canvas width=1280 height=720></canvas><script>
    const gl = document.querySelector('canvas').getContext('webgl', { preserveDrawingBuffer: true });
    let n = 0;
    if (gl) setInterval(() => { gl.clearColor(0.5 + 0.4 * Math.sin(n++), 0.6, 0.8, 1); gl.clear(gl.COLOR_BUFFER_BIT); }, 400);
  </script>`,
});
pages.set('/foreign', (_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  const src = `${pages.b}/static`;
  response.end(`<!doctype html><style>*{margin:0}</style><iframe width="1280" height="720" src="${src}"></iframe>`);
});
const KINDS = ['/static', '/canvas', '/webgl', '/foreign'];
const server = await startServer({ pages });

/** Tabs in windows of their own, so that all of them are painted; and one that is a popup. When each was opened. */
async function openTabs(client: CdpClient, count: number): Promise<number[]> {
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.a}/static` }, page);
  const opened = [Date.now(), Date.now()];
  await client.send('Runtime.evaluate', { expression: "void window.open('/canvas')", userGesture: true }, page);
  for (let tab = 2; tab < count; tab++) {
    opened.push(Date.now());
    await client.send('Target.createTarget', { url: `${pages.a}${KINDS[tab % KINDS.length]}`, newWindow: true });
  }
  return opened;
}

/** Every tab is stored, decodes, is as long as it lived, and is never all black. */
async function assertWhole(
  on: TestServer,
  id: string,
  opened: readonly number[],
  endMs: number,
  asked: () => Promise<void> = async () => {},
): Promise<void> {
  const tabs = opened.length;
  await eventually(
    'all tabs to be stored',
    () => replaysOf(on, id),
    list => list.length === tabs,
    STORED_MS,
  );
  await askForFiles(on, id);
  await asked();
  const files = await eventually(
    'all files',
    () => filesOf(on, id),
    list => list.every(isDone),
    STORED_MS,
  );
  assert.deepEqual(
    files.map(({ status }) => status),
    files.map(() => 'COMPLETED'),
  );
  for (const { pageId, downloadUrl } of files) {
    const film = Buffer.from(await (await fetch(downloadUrl ?? '')).arrayBuffer());
    const lengthMs = durationOf(film) * 1000;
    const livedMs = endMs - (opened[Number(pageId)] ?? 0);
    const isAsLong = lengthMs < livedMs + TOLERANCE_MS && lengthMs > livedMs - TOLERANCE_MS - LATE_MS;
    assert.ok(isAsLong, `page ${pageId}: ${lengthMs} ms of ${livedMs}`);
    const dark = framesOf(film).filter(({ at, colour }) => at > 1.5 && colour.every(value => value < BLACK));
    assert.deepEqual(dark, [], `page ${pageId} is black`);
  }
}

const isDone = ({ status }: { status: string }): boolean => status === 'COMPLETED' || status === 'FAILED';

test('the browser is killed with twelve tabs', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const opened = await openTabs(client, 12);
  await setTimeout(LIVED_MS);
  killBox(server.dataDir, id);
  const killed = Date.now();
  await server.ended(id);
  await assertWhole(server, id, opened, killed);
});

test('the server is killed while it records and encodes: the successor goes on with every tab', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const opened = await openTabs(client, 4);
  await setTimeout(LIVED_MS);
  await server.restart();
  await setTimeout(2_000);
  const releasing = Date.now();
  await server.release(id);
  await assertWhole(server, id, opened, releasing);
});

test('server and browser are killed: what was recorded until then is stored by the successor', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const opened = await openTabs(client, 4);
  await setTimeout(LIVED_MS);
  const killed = Date.now();
  await server.kill();
  killBox(server.dataDir, id);
  await server.restart();
  await server.ended(id);
  // And killed once more while the files are put together.
  await assertWhole(server, id, opened, killed, () => server.restart());
  await server.settles();
});

test('without an encoder, and with one that is killed, sessions go on, and what was recorded is stored once there is one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-ffmpeg-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const encoder = join(folder, 'ffmpeg');
  const own = await startServer({ pages, env: { BERTH_FFMPEG: encoder } });
  const { id, connectUrl } = await own.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const opened = await openTabs(client, 2);
  await setTimeout(LIVED_MS);
  assert.equal((await own.read(id)).status, 'RUNNING');
  assert.deepEqual(await replaysOf(own, id), []);
  // Its first runs end as a kill ends them.
  const marks = join(folder, 'runs');
  writeFileSync(
    encoder,
    `#!/bin/sh\necho x >> ${marks}\n[ $(wc -l < ${marks}) -lt 3 ] && kill -9 $$\nexec ffmpeg "$@"\n`,
  );
  chmodSync(encoder, 0o755);
  await eventually(
    'the first segment',
    () => replaysOf(own, id),
    list => list.length === 2,
    STORED_MS,
  );
  const releasing = Date.now();
  await own.release(id);
  await playlistWhen(own, id, '0', text => text.includes('ENDLIST'));
  await assertWhole(own, id, opened, releasing);
  const film = await fetchFilm(await playlistWhen(own, id, '1', text => text.includes('ENDLIST')));
  assert.ok(framesOf(film).length > 10, 'the moving one has all its frames');
});
