// The daily byte budget of an application: the bytes of all its sessions are counted, shown with the limits, and kept
// when the server is killed. When the budget is used up, sessions end and creates are refused until midnight UTC.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Browser, chromium } from 'playwright-core';
import type { ErrorBody } from '../../contract/common.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, readLimits, setLimits } from '../harness/limits.ts';
import { BIG_FILE_BYTES, openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { waitForSessionEvent } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const DAY_S = 24 * 3600;
const COUNT_INTERVAL_MS = 5_000;

const pages = await openPages({ '/plain': '<!doctype html><title>Plain</title>' });
const server = await startServer({ clock: 'test', pages, env: { BERTH_ENGINE: LIGHT_ENGINE } });
const token = await createOwnerToken(server);
const openedBrowsers: Browser[] = [];
after(() => Promise.all(openedBrowsers.map(browser => browser.close().catch(() => {}))));

const readUsedBytes = async (): Promise<number> => (await readLimits(server, token)).usage.browsers.egressBytesPerDay;
const advanceAndReadUsedBytes = async (): Promise<number> => {
  await server.advance(COUNT_INTERVAL_MS);
  return readUsedBytes();
};
const waitForCountedBytes = (minBytes: number): Promise<number> =>
  eventually('the bytes to be counted', advanceAndReadUsedBytes, bytes => bytes >= minBytes);

async function download(session: CreatedSession): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  openedBrowsers.push(browser);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(`${pages.a}/plain`);
  await page
    ?.evaluate(url => fetch(url, { cache: 'no-store' }).then(response => response.arrayBuffer()), `${pages.a}/big`)
    .catch(() => {});
}

test('the bytes of a session are counted toward the daily limit, and the count is kept when the server is killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  await download(session);
  const bytesBefore = await waitForCountedBytes(BIG_FILE_BYTES);
  await server.restart('SIGKILL');
  assert.ok((await readUsedBytes()) >= bytesBefore);
  await download(session);
  const both = await waitForCountedBytes(bytesBefore + BIG_FILE_BYTES);
  await server.release(session.id);
  assert.ok(both < 3 * BIG_FILE_BYTES, `${both} bytes`);
});

test('when an application reaches its daily traffic limit, its sessions end, and create requests are refused until the next day', async () => {
  const firstSession = await server.createSession({ keepAlive: true });
  const secondSession = await server.createSession({ keepAlive: true });
  const limit = (await readUsedBytes()) + BIG_FILE_BYTES / 2;
  await setLimits(server, token, { egressBytesPerDay: limit });
  await download(firstSession);
  await waitForCountedBytes(limit);
  for (const { id } of [firstSession, secondSession]) {
    const { status, endReason } = await server.waitUntilEnded(id);
    assert.deepEqual([status, endReason], ['ERROR', 'egress_limit']);
    const [decided] = await waitForSessionEvent(server, id, 'session.end_decided');
    assert.equal(decided?.detail.detail, `the application used up its egressBytesPerDay (${limit})`);
  }
  for (const headers of [{}, { prefer: 'wait=50' }]) {
    const refusal = await server.api<ErrorBody>('POST', '/v1/browsers/sessions', { body: {}, headers });
    assert.deepEqual([refusal.status, refusal.body.code], [429, 'rate_limited']);
    assert.match(refusal.body.message, /egressBytesPerDay/);
    const { retryAfterSeconds, ...details } = refusal.body.details ?? {};
    assert.deepEqual(details, { limit, used: await readUsedBytes(), scope: 'application' });
    assert.equal(refusal.headers['retry-after'], String(retryAfterSeconds));
    assert.ok(Number(retryAfterSeconds) > 0 && Number(retryAfterSeconds) <= DAY_S, `${retryAfterSeconds}`);
  }
  await server.advance(DAY_S * 1000);
  assert.equal(await readUsedBytes(), 0);
  const { id } = await server.createSession();
  assert.equal((await server.release(id)).status, 'COMPLETED');
});
