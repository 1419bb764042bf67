// Storage fails during a recording: the object store is down for a minute, or the disk is full. The session continues,
// the recording lists its gaps, and everything that could be stored is stored.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CdpClient } from '../harness/cdp.ts';
import { durationOf, framesOf } from '../harness/film.ts';
import { openPages } from '../harness/pages.ts';
import { listRecordingFiles, listReplays, requestFiles } from '../harness/recordings.ts';
import { startS3 } from '../harness/s3.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const MIB = 1024 ** 2;
const DISK_BYTES = 900 * MIB;
/** Less than the free space that recordings require. */
const NEARLY_FULL_BYTES = 400 * MIB;
const OUTAGE_MS = 60_000;
const STORE_TIMEOUT_MS = 60_000;
const TOLERANCE_MS = 1_000;

const pages = await openPages({
  '/moving': `<!doctype html><style>*{margin:0}</style><canvas width=1280 height=720></canvas><script>
    const context = document.querySelector('canvas').getContext('2d');
    let n = 0;
    setInterval(() => { context.fillStyle = 'hsl(' + (n += 40) + ',90%,60%)'; context.fillRect(0, 0, 1280, 720); }, 500);
  </script>`,
});

async function startRecording(server: TestServer) {
  const createdFrom = Date.now();
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const createdTo = Date.now();
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/moving` }, page);
  return { id, client, page, from: createdFrom, to: createdTo };
}

async function fetchFile(server: TestServer, id: string): Promise<Buffer> {
  await eventually(
    'the request to be accepted',
    async () => (await requestFiles(server, id)).status === 202,
    Boolean,
    STORE_TIMEOUT_MS,
  );
  const [file] = await eventually(
    'the file',
    () => listRecordingFiles(server, id),
    ([one]) => one?.status === 'COMPLETED' || one?.status === 'FAILED',
    STORE_TIMEOUT_MS,
  );
  assert.equal(file?.status, 'COMPLETED');
  return Buffer.from(await (await fetch(file?.downloadUrl ?? '')).arrayBuffer());
}

test('requests for files return 502 while the object store is down for a minute, and everything is stored afterwards', async () => {
  const store = await startS3();
  after(() => store.close());
  const server = await startServer({ pages, env: store.env });
  const { id, client, page, from: createdFrom, to: createdTo } = await startRecording(server);
  await eventually(
    'the first segment',
    () => listReplays(server, id),
    list => list.length === 1,
    STORE_TIMEOUT_MS,
  );
  await store.down();
  await setTimeout(OUTAGE_MS);
  assert.equal(await client.evaluate('1 + 1', page), 2);
  const releasedFrom = Date.now();
  await server.release(id);
  const releasedTo = Date.now();
  await server.waitUntilEnded(id);
  const refusedResponse = await requestFiles(server, id);
  assert.deepEqual(
    [refusedResponse.status, (refusedResponse.body as { code: string }).code],
    [502, 'recording_service_unavailable'],
  );
  await store.up();
  const film = await fetchFile(server, id);
  const lengthMs = durationOf(film) * 1_000;
  const isWhole =
    lengthMs > releasedFrom - createdTo - TOLERANCE_MS && lengthMs < releasedTo - createdFrom + TOLERANCE_MS;
  assert.ok(isWhole, `${lengthMs} of ${releasedFrom - createdTo} to ${releasedTo - createdFrom}`);
  assert.ok(framesOf(film).length > OUTAGE_MS / 1_000, 'every frame of the time without a store was stored');
  const [{ gaps = [] } = {}] = await listReplays(server, id);
  assert.deepEqual(
    gaps.filter(({ startTimeMs }) => startTimeMs > 0),
    [],
  );
});

test('a recording has a gap while the disk is full and continues later, and its session continues throughout', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-disk-'));
  run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=755`, 'berth-test', folder);
  const ballast = openSync(join(folder, 'ballast'), 'w');
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const server = await startServer({ pages, dataDir });
  after(() => {
    closeSync(ballast);
    run('umount', folder);
    rmSync(folder, { recursive: true });
  });
  const { id, client, page, from: createdFrom, to: createdTo } = await startRecording(server);
  await eventually(
    'the first segment',
    () => listReplays(server, id),
    list => list.length === 1,
    STORE_TIMEOUT_MS,
  );
  leaveFree(folder, ballast, NEARLY_FULL_BYTES);
  await eventually(
    'the event recording.limited',
    () => listEvents(server, id, 'recording.limited'),
    list => list.length === 1,
    STORE_TIMEOUT_MS,
  );
  const [limitedEvent] = await listEvents(server, id, 'recording.limited');
  assert.deepEqual(limitedEvent?.detail, { reason: 'disk_full' });
  const openGap = await eventually(
    'the recording to list a gap',
    async () => (await listReplays(server, id))[0]?.gaps?.filter(({ why }) => why === 'missing').at(-1),
    gap => gap !== undefined && gap.startTimeMs > 0,
  );
  assert.equal(await client.evaluate('1 + 1', page), 2, 'the session continues');
  leaveFree(folder, ballast, DISK_BYTES);
  const endMsBefore = (await listReplays(server, id))[0]?.endTimeMs ?? 0;
  await eventually(
    'the recording to continue',
    () => listReplays(server, id),
    ([one]) => (one?.endTimeMs ?? 0) > endMsBefore + 6_000,
    STORE_TIMEOUT_MS,
  );
  const releasedFrom = Date.now();
  await server.release(id);
  const releasedTo = Date.now();
  await server.waitUntilEnded(id);
  const film = await fetchFile(server, id);
  const lengthMs = durationOf(film) * 1_000;
  const isWhole =
    lengthMs > releasedFrom - createdTo - TOLERANCE_MS && lengthMs < releasedTo - createdFrom + TOLERANCE_MS;
  assert.ok(isWhole, `${lengthMs} of ${releasedFrom - createdTo} to ${releasedTo - createdFrom}`);
  const [{ gaps = [] } = {}] = await listReplays(server, id);
  const [gap, ...more] = gaps.filter(({ why, startTimeMs }) => why === 'missing' && startTimeMs > 0);
  assert.deepEqual([gap?.startTimeMs, more], [openGap?.startTimeMs, []]);
  assert.ok((gap?.endTimeMs ?? 0) > (gap?.startTimeMs ?? 0));
});

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command}: ${stderr}`);
}

/** Fills the disk or frees space until about this much is free. */
function leaveFree(folder: string, ballast: number, bytes: number): void {
  ftruncateSync(ballast, 0);
  const block = Buffer.alloc(MIB);
  for (let free = freeBytesIn(folder); free > bytes; free -= MIB) writeSync(ballast, block);
}

function freeBytesIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
