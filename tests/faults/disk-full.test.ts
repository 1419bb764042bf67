// The disk of the data folder is full. The test uses its own file system. New sessions are refused with a clear error,
// running sessions continue as far as possible, and everything recovers once there is space.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { after, afterEach, test } from 'node:test';
import type { DownloadPage } from '../../contract/files.ts';
import type { Readiness } from '../../contract/service.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { assertOpenSessionsRespond, listOpenSessions, releaseAll } from './aftermath.ts';
import { connectPlaywright, firstPage, isResponsive } from './clients.ts';

const MIB = 1024 ** 2;
const DISK_BYTES = 700 * MIB;
/** Free space that is too small for a new session, but enough for running ones. */
const NEARLY_FULL_BYTES = 60 * MIB;

/** A number of free inodes that is too low for the files of a new session. */
const FEW_INODES = 2_000;

const REFILL_INTERVAL_MS = 5;

const folder = mkdtempSync(join(tmpdir(), 'berth-disk-'));
run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=755`, 'berth-test', folder);
const dataDir = join(folder, 'data');
mkdirSync(dataDir, { mode: 0o700 });
const ballast = openSync(join(folder, 'ballast'), 'w');

const FILE = Buffer.alloc(300_000, 'whole');
const attachmentHeaders = (name: string) => ({
  'content-type': 'application/octet-stream',
  'content-disposition': `attachment; filename=${name}`,
});
const diskSizedBody = (): Readable =>
  Readable.from(Array.from({ length: DISK_BYTES / MIB }, () => Buffer.alloc(MIB, 1)));
const pages = await openPages({
  '/files':
    '<!doctype html><title>Files</title><a id=whole href=/whole>whole</a><a id=huge href=/huge>huge</a><a id=endless href=/endless>endless</a>',
  '/whole': (_, response) => void response.writeHead(200, attachmentHeaders('whole.bin')).end(FILE),
  '/huge': (_, response) => {
    response.writeHead(200, { ...attachmentHeaders('huge.bin'), 'content-length': String(DISK_BYTES) });
    pipeline(diskSizedBody(), response, () => {});
  },
  '/endless': (_, response) => {
    response.writeHead(200, attachmentHeaders('endless.bin'));
    pipeline(diskSizedBody(), response, () => {});
  },
});
const server = await startServer({ pages, dataDir, env: { BERTH_SLOTS: '4' } });
// Registered after the server's own cleanup, so that it runs after that cleanup.
after(async () => {
  closeSync(ballast);
  // The kernel may still be releasing the mount for processes that have just ended.
  await eventually('the file system to be unmounted', () => spawnSync('umount', [folder]).status === 0);
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  leaveFree(DISK_BYTES);
  await eventually(
    'the server to be ready',
    () => server.fetchFromOperator('/readyz').then(({ status }) => status === 200),
    Boolean,
    60_000,
  );
  await releaseAll(server);
});

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command}: ${stderr}`);
}

/**
 * Whether a repeated release was refused with 409. The first request may have released the session although the request
 * failed.
 */
const isReleaseConflict = (error: unknown): boolean => /^Error: release: 409/.test(String(error));

const readFreeBytes = (): number => {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
};

/** Fills the disk or frees space until about this much is free. */
function leaveFree(bytes: number): void {
  ftruncateSync(ballast, 0);
  fillUntilFree(bytes);
}

function fillUntilFree(bytes: number): void {
  const part = Buffer.alloc(MIB, 1);
  let { size } = fstatSync(ballast);
  try {
    while (readFreeBytes() > bytes)
      size += writeSync(ballast, part, 0, Math.min(MIB, Math.max(1, readFreeBytes() - bytes)), size);
  } catch (error) {
    // The server writes at the same time, so the disk may already be full.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}

test('create requests are refused with a capacity error when disk space is low, and running sessions are kept', async () => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await connectPlaywright(session);
  const page = firstPage(browser);
  leaveFree(NEARLY_FULL_BYTES);
  const { status, headers, body } = await server.api('POST', '/v1/browsers/sessions', { body: {} });
  assert.deepEqual([status, body.code], [503, 'capacity']);
  assert.match(body.message, /disk/);
  const { freeBytes: reportedFreeBytes } = Object(Object(body.details).disk);
  // The browser and the database may have freed some space since `leaveFree`.
  assert.ok(Number(reportedFreeBytes) < 2 * NEARLY_FULL_BYTES, String(reportedFreeBytes));
  assert.equal(headers['x-should-retry'], 'true');
  assert.ok(Number(headers['retry-after']) > 0);
  assert.deepEqual(
    (await listOpenSessions(server)).map(({ id }) => id),
    [session.id],
    'the refused create left no open session',
  );

  await page.goto(`${pages.url}/next`);
  assert.equal(await page.title(), 'Next');
  await browser.close();
  leaveFree(DISK_BYTES);
  const nextSession = await server.createSession({ keepAlive: true });
  assert.ok(await isResponsive(nextSession));
  await server.release(session.id);
  await server.waitUntilSettled([nextSession.id]);
});

test('create requests are refused when the disk has few inodes left, and are accepted again afterwards', async () => {
  const { files, ffree } = statfsSync(folder);
  run('mount', '-o', `remount,nr_inodes=${files - ffree + FEW_INODES}`, folder);
  const { status, body } = await server.api('POST', '/v1/browsers/sessions', { body: {} });
  const readinessResponse = await server.fetchFromOperator<Readiness>('/readyz');
  run('mount', '-o', `remount,nr_inodes=${files}`, folder);
  assert.deepEqual([status, body.code], [503, 'capacity']);
  assert.match(body.message, /almost no inodes left \(\d+ free\)/);
  const disk = readinessResponse.body.checks.find(({ name }) => name === 'disk');
  assert.deepEqual([readinessResponse.status, disk?.ok], [503, false]);
  assert.match(disk?.detail ?? '', /inodes free/);
  const session = await server.createSession({ keepAlive: true });
  assert.ok(await isResponsive(session));
});

test('on a full disk, create requests are refused and sessions stay usable, and releases take effect once there is space', async () => {
  const session = await server.createSession({ keepAlive: true });
  const otherSession = await server.createSession({ keepAlive: true });
  const browser = await connectPlaywright(session);
  leaveFree(0);
  for (let times = 0; times < 20; times++) {
    const { status, body } = await server.api('POST', '/v1/browsers/sessions', { body: {} });
    assert.deepEqual([status, body.code], [503, 'capacity']);
  }
  assert.equal(await firstPage(browser).evaluate('6 * 7'), 42);
  const releaseResponse = await server.api('POST', `/v1/browsers/sessions/${otherSession.id}`, {
    body: { status: 'REQUEST_RELEASE' },
  });
  assert.ok(releaseResponse.status === 200 || releaseResponse.status >= 500, releaseResponse.text);
  leaveFree(DISK_BYTES);
  // The release is stored if the database has space left in its files. Otherwise the caller gets an error and repeats
  // the release.
  if (releaseResponse.status !== 200)
    await eventually('the release', () => server.release(otherSession.id).then(() => true, isReleaseConflict));
  await eventually(
    'only the other session to be open',
    () => assertOpenSessionsRespond(server).then(ids => ids.join(), String),
    seen => seen === session.id,
  );
  await server.waitUntilSettled([session.id]);
  await browser.close();
});

test('a download that fills the disk fails, but its session continues and can download again once there is space', async () => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await connectPlaywright(session);
  const page = firstPage(browser);
  await page.goto(`${pages.a}/files`);
  leaveFree(NEARLY_FULL_BYTES);
  // One download declares its size, and the other continues until nothing more can be written.
  for (const name of ['huge', 'endless']) {
    await page.click(`#${name}`);
    const readFailedEvents = () => listEvents(server, session.id, 'download.failed');
    const failedEvents = await eventually(`${name} to fail`, readFailedEvents, events =>
      events.some(({ detail }) => detail.filename === `${name}.bin`),
    );
    const failedEvent = failedEvents.find(({ detail }) => detail.filename === `${name}.bin`);
    assert.equal(failedEvent?.detail.reason, 'the disk is full', name);
    assert.equal(await page.evaluate('6 * 7'), 42);
  }
  leaveFree(DISK_BYTES);
  await page.click('#whole');
  const { downloads } = await eventually(
    'the next download',
    async () => (await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session.id}`)).body,
    ({ total }) => total > 0,
  );
  assert.deepEqual(
    downloads.map(({ filename, size }) => [filename, size]),
    [['whole.bin', FILE.length]],
  );
  await browser.close();
});

test('a session continues when the server is killed and restarted on a nearly full disk', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.kill();
  leaveFree(NEARLY_FULL_BYTES);
  await server.start('serving');
  const { status, body } = await server.fetchFromOperator<Readiness>('/readyz');
  assert.deepEqual([status, body.checks.filter(({ ok }) => !ok).map(({ name }) => name)], [503, ['disk']]);
  assert.ok(await isResponsive(session));
  await server.waitUntilSettled([session.id]);
});

test('the server fails to start on a full disk and reports the reason, and a later start keeps the session', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.kill();
  leaveFree(0);
  // The running browser and database free some space from time to time.
  const fillTimer = setInterval(() => fillUntilFree(0), REFILL_INTERVAL_MS);
  // The log of PostgreSQL is also on the full disk, so the text `No space left` may be truncated in it.
  await assert.rejects(server.start(), /No space left|ENOSPC/).finally(() => clearInterval(fillTimer));
  leaveFree(DISK_BYTES);
  await server.start();
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  assert.ok(await isResponsive(session));
});
