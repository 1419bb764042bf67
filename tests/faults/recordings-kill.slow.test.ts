// Recordings survive the death of the browser, of the server and of both, and a missing encoder. The file for each tab
// decodes completely, is as long as the tab existed, and shows what was painted.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CdpClient } from '../harness/cdp.ts';
import { encoderPidsOf } from '../harness/encoders.ts';
import { durationOf, framesOf } from '../harness/film.ts';
import { killBox } from '../harness/kill-box.ts';
import { killIfRunning } from '../harness/kill-if-there.ts';
import { openPages } from '../harness/pages.ts';
import { fetchFilm, listRecordingFiles, listReplays, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const RECORDING_MS = 9_000;
/** By how much a recording may be longer or shorter than the time for which its tab existed. */
const TOLERANCE_MS = 1_000;
/** Like `TOLERANCE_MS`, but for gaps. Allows for the time until the next server observes every tab. */
const GAP_TOLERANCE_MS = 3_000;
const STORE_TIMEOUT_MS = 90_000;
const BLACK_MAX = 16;

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
const TAB_PATHS = ['/static', '/canvas', '/webgl', '/foreign'];
const server = await startServer({ pages });

/** The times at which an action was requested and its effect was observed. The effect occurred between the two. */
interface TimeRange {
  readonly from: number;
  readonly to: number;
}

async function measureTimeRange(what: () => Promise<unknown>): Promise<TimeRange> {
  const from = Date.now();
  await what();
  return { from, to: Date.now() };
}

/**
 * Opens tabs in their own windows, so that all are painted, and one popup. Returns the time range in which each opened.
 */
async function openTabs(client: CdpClient, count: number, first: TimeRange): Promise<TimeRange[]> {
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.a}/static` }, page);
  const expression = "void window.open('/canvas')";
  const openRanges = [first];
  openRanges.push(
    await measureTimeRange(() => client.send('Runtime.evaluate', { expression, userGesture: true }, page)),
  );
  for (let tab = 2; tab < count; tab++) {
    const url = `${pages.a}${TAB_PATHS[tab % TAB_PATHS.length]}`;
    openRanges.push(await measureTimeRange(() => client.send('Target.createTarget', { url, newWindow: true })));
  }
  return openRanges;
}

/**
 * Asserts that the recording of every tab is stored, decodes, is as long as the tab existed, and is never all black.
 */
async function assertWhole(
  testServer: TestServer,
  id: string,
  openRanges: readonly TimeRange[],
  endRange: TimeRange,
  afterRequest: () => Promise<void> = async () => {},
): Promise<void> {
  const tabCount = openRanges.length;
  await eventually(
    'all tabs to be stored',
    () => listReplays(testServer, id),
    list => list.length === tabCount,
    STORE_TIMEOUT_MS,
  );
  await requestFiles(testServer, id);
  await afterRequest();
  const files = await eventually(
    'all files',
    () => listRecordingFiles(testServer, id),
    list => list.every(isDone),
    STORE_TIMEOUT_MS,
  );
  assert.deepEqual(
    files.map(({ status }) => status),
    files.map(() => 'COMPLETED'),
    testServer
      .log()
      .filter(line => line.includes('recording.not'))
      .join('\n'),
  );
  for (const { pageId, downloadUrl } of files) {
    const film = Buffer.from(await (await fetch(downloadUrl ?? '')).arrayBuffer());
    const lengthMs = durationOf(film) * 1000;
    const { from, to } = openRanges[Number(pageId)] ?? { from: 0, to: 0 };
    const [minMs, maxMs] = [endRange.from - to, endRange.to - from];
    const hasExpectedLength = lengthMs < maxMs + TOLERANCE_MS && lengthMs > minMs - TOLERANCE_MS;
    assert.ok(hasExpectedLength, `page ${pageId}: ${lengthMs} ms of ${minMs} to ${maxMs}`);
    const darkFrames = framesOf(film).filter(({ at, colour }) => at > 1.5 && colour.every(value => value < BLACK_MAX));
    assert.deepEqual(darkFrames, [], `page ${pageId} is black`);
  }
}

/** Creates a session and connects to it. `creationRange` is the period in which its first tab may have opened. */
async function createAndConnect(
  testServer: TestServer,
): Promise<{ id: string; client: CdpClient; creationRange: TimeRange }> {
  const from = Date.now();
  const { id, connectUrl } = await testServer.createSession({ keepAlive: true });
  const creationRange = { from, to: Date.now() };
  return { id, client: await CdpClient.connect(connectUrl), creationRange };
}

const isDone = ({ status }: { status: string }): boolean => status === 'COMPLETED' || status === 'FAILED';

test('the recording of every tab is stored completely if a browser with twelve tabs is killed', async () => {
  const { id, client, creationRange } = await createAndConnect(server);
  const openRanges = await openTabs(client, 12, creationRange);
  await setTimeout(RECORDING_MS);
  const killRange = await measureTimeRange(async () => killBox(server.dataDir, id));
  await server.waitUntilEnded(id);
  await assertWhole(server, id, openRanges, killRange);
});

test('the next server continues the recording of every tab if the server is killed while recording and encoding', async () => {
  const { id, client, creationRange } = await createAndConnect(server);
  const openRanges = await openTabs(client, 4, creationRange);
  await setTimeout(RECORDING_MS);
  const downRange = await measureTimeRange(() => server.restart());
  await setTimeout(2_000);
  const releaseRange = await measureTimeRange(() => server.release(id));
  await assertWhole(server, id, openRanges, releaseRange);
  // From the death of the server until the next server observes the tab, the recording has a marked gap that shows the
  // last frame.
  for (const { pageId, startTimeMs, gaps = [] } of await listReplays(server, id)) {
    const restartGaps = gaps.filter(
      ({ why, startTimeMs: from }) => why === 'missing' && from - startTimeMs > RECORDING_MS / 2,
    );
    const gapMs = (restartGaps[0]?.endTimeMs ?? 0) - (restartGaps[0]?.startTimeMs ?? 0);
    const hasRestartGap =
      restartGaps.length === 1 && gapMs > 0 && gapMs < downRange.to - downRange.from + GAP_TOLERANCE_MS;
    assert.ok(hasRestartGap, `page ${pageId}: ${JSON.stringify(gaps)}`);
  }
});

test('the next server stores the recorded part of every tab if the server and the browser are killed', async () => {
  const { id, client, creationRange } = await createAndConnect(server);
  const openRanges = await openTabs(client, 4, creationRange);
  await setTimeout(RECORDING_MS);
  const killRange = await measureTimeRange(async () => {
    await server.kill();
    killBox(server.dataDir, id);
  });
  await server.restart();
  await server.waitUntilEnded(id);
  // The server is killed again while the files are being assembled.
  await assertWhole(server, id, openRanges, killRange, () => server.restart());
  await server.waitUntilSettled();
});

test('recordings are stored once an encoder works, even if the encoder was missing at first and then killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-ffmpeg-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  // The encoder does not run as root and needs access to the folder.
  chmodSync(folder, 0o755);
  const encoderPath = join(folder, 'ffmpeg');
  const ownServer = await startServer({ pages, env: { BERTH_FFMPEG: encoderPath } });
  const { id, client, creationRange } = await createAndConnect(ownServer);
  const openRanges = await openTabs(client, 2, creationRange);
  await setTimeout(RECORDING_MS);
  assert.equal((await ownServer.read(id)).status, 'RUNNING');
  assert.deepEqual(await listReplays(ownServer, id), []);
  copyFileSync('/usr/bin/ffmpeg', encoderPath);
  // The first two encoder processes are killed.
  for (let runs = 0; runs < 2; runs++) {
    const [pid = 0] = await eventually(
      'ffmpeg to run',
      () => encoderPidsOf(ownServer.pid),
      ({ length }) => length > 0,
      STORE_TIMEOUT_MS,
    );
    killIfRunning(pid);
  }
  await eventually(
    'the first segment',
    () => listReplays(ownServer, id),
    list => list.length === 2,
    STORE_TIMEOUT_MS,
  );
  const releaseRange = await measureTimeRange(() => ownServer.release(id));
  await waitForPlaylist(ownServer, id, '0', text => text.includes('ENDLIST'));
  await assertWhole(ownServer, id, openRanges, releaseRange);
  const film = await fetchFilm(await waitForPlaylist(ownServer, id, '1', text => text.includes('ENDLIST')));
  assert.ok(framesOf(film).length > 10, 'the moving page has all its frames');
});
