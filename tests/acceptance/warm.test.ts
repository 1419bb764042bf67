// Warm browsers are claimed once, replaced when they die, removed with the server, and reported when they cannot be
// started.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { boxesOf, isBoxReady, processorShareOf } from '../harness/boxes.ts';
import { killIfRunning } from '../harness/kill-if-there.ts';
import { installIdOf } from '../harness/leftovers.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const CREATE_MS_MAX = 15_000;
/** Much less than the time that a create waits for a warm browser that is being started. */
const WARM_START_DELAY_SECONDS = 0.5;

async function readMetric(server: TestServer, line: string): Promise<number> {
  const { text } = await server.fetchFromOperator('/metrics');
  const metricLine = text.split('\n').find(one => one.startsWith(`${line} `));
  return Number(metricLine?.slice(line.length) ?? 0);
}

const waitForWarmBrowsers = (server: TestServer, count: number): Promise<unknown> =>
  eventually(
    `${count} warm browsers`,
    () => readMetric(server, 'berth_warm_browsers'),
    found => found === count,
    60_000,
  );

test('sessions created with default settings claim warm browsers, which are then replaced, and no two sessions share a browser', async () => {
  const server = await startServer({ env: { BERTH_WARM: '2', BERTH_SLOTS: '4' } });
  await waitForWarmBrowsers(server, 2);
  for (const { id } of boxesOf(server.dataDir))
    assert.ok(Number(processorShareOf(server.dataDir, id)) < 0.2, 'a warm browser has a low CPU share');
  const sessions = await Promise.all(Array.from({ length: 4 }, () => server.createSession()));
  assert.ok((await readMetric(server, 'berth_warm_claims_total{outcome="hit"}')) >= 2);
  await waitForWarmBrowsers(server, 2);
  // A box has a smaller CPU share while its browser is starting.
  await eventually(
    'four boxes to have their full share',
    () => boxesOf(server.dataDir).map(({ id }) => processorShareOf(server.dataDir, id)),
    shares => shares.filter(share => share === 1).length === 4,
  );
  const markedBrowsers = await Promise.all(
    sessions.map(async ({ id, connectUrl }) => {
      const browser = await chromium.connectOverCDP(connectUrl);
      const [context] = browser.contexts();
      assert.ok(context);
      assert.equal(context.pages()[0]?.url(), 'about:blank');
      await context.addCookies([{ name: 'mark', value: id, url: 'http://a.test/' }]);
      return { id, context, browser };
    }),
  );
  for (const { id, context } of markedBrowsers)
    assert.deepEqual(
      (await context.cookies()).map(cookie => cookie.value),
      [id],
    );
  await Promise.all(sessions.map(session => server.release(session.id)));
  // Closed last, because a session ends by itself after its client has disconnected.
  for (const { browser } of markedBrowsers) await browser.close();
  const countStarts = (browser: string) =>
    readMetric(server, `berth_session_start_seconds_count{browser="${browser}"}`);
  const [hits, misses] = await Promise.all([
    readMetric(server, 'berth_warm_claims_total{outcome="hit"}'),
    readMetric(server, 'berth_warm_claims_total{outcome="miss"}'),
  ]);
  assert.deepEqual([await countStarts('warm'), await countStarts('cold')], [hits, misses]);
  assert.equal(hits + misses, 4);
});

test('a new session can claim a warm browser that is still starting, and the browser then gets its full CPU share', async () => {
  const faultyChromium = await createFaultyChromium();
  faultyChromium.setBehavior('slow', WARM_START_DELAY_SECONDS);
  const server = await startServer({ env: { BERTH_WARM: '1', BERTH_SLOTS: '2', BERTH_CHROMIUM: faultyChromium.path } });
  // A browser can be claimed once its box exists, because the claim sets the CPU share of the box. If the browser has
  // already started, it is claimed like any other warm browser.
  await eventually('a browser to be starting in its box', () => boxesOf(server.dataDir).some(isBoxReady));
  const [startingBox] = boxesOf(server.dataDir);
  assert.ok(startingBox);
  // The kernel shows the process before the server has registered the browser, so the test also waits for a response
  // from the server.
  await readMetric(server, 'berth_warm_browsers');
  const session = await server.createSession();
  assert.deepEqual(
    boxesOf(server.dataDir).filter(({ id }) => id === startingBox.id).length,
    1,
    'the box that was starting still exists',
  );
  const readShare = () => processorShareOf(server.dataDir, startingBox.id);
  await eventually('the box to have its full CPU share after its start', readShare, now => now === 1);
  assert.equal(await readMetric(server, 'berth_warm_claims_total{outcome="hit"}'), 1);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  assert.equal(await browser.contexts()[0]?.pages()[0]?.evaluate('1 + 1'), 2);
  await server.release(session.id);
  await browser.close();
});

test('if the warm browser hangs while starting, a create does not wait for it and starts another browser', async () => {
  const faultyChromium = await createFaultyChromium();
  const server = await startServer({ env: { BERTH_WARM: '1', BERTH_SLOTS: '3', BERTH_CHROMIUM: faultyChromium.path } });
  await waitForWarmBrowsers(server, 1);
  const [claimedBox] = boxesOf(server.dataDir);
  faultyChromium.setBehavior('hangs');
  const firstSession = await server.createSession();
  const hangingBox = await eventually(
    'another browser to be starting in its box',
    () => boxesOf(server.dataDir).find(box => box.id !== claimedBox?.id && isBoxReady(box)),
    Boolean,
  );
  await eventually('the browser to hang', () => faultyChromium.isStarting());
  // The kernel shows the process before the server has registered the browser.
  await readMetric(server, 'berth_warm_browsers');
  faultyChromium.setBehavior('well');
  const session = await withTimeLimit('the session to be created', server.createSession(), CREATE_MS_MAX);
  assert.equal(await readMetric(server, 'berth_warm_claims_total{outcome="miss"}'), 1);
  const boxIds = boxesOf(server.dataDir).map(({ id }) => id);
  assert.ok(boxIds.includes(String(hangingBox?.id)), 'the warm browser still hangs');
  assert.equal(processorShareOf(server.dataDir, String(hangingBox?.id)), 1, 'the create waited for the warm browser');
  const browser = await chromium.connectOverCDP(session.connectUrl);
  assert.equal(await browser.contexts()[0]?.pages()[0]?.evaluate('1 + 1'), 2);
  for (const { id } of [firstSession, session]) await server.release(id);
  await browser.close();
});

test('a warm browser that was started before an upgrade of Chromium is replaced instead of claimed', async () => {
  const faultyChromium = await createFaultyChromium();
  const server = await startServer({ env: { BERTH_WARM: '1', BERTH_CHROMIUM: faultyChromium.path } });
  await waitForWarmBrowsers(server, 1);
  const [oldBox] = boxesOf(server.dataDir);
  assert.ok(oldBox);
  faultyChromium.upgrade();
  const session = await server.createSession();
  assert.equal(await readMetric(server, 'berth_warm_claims_total{outcome="miss"}'), 1, 'not the old browser');
  await eventually(
    'a new warm browser',
    () => boxesOf(server.dataDir).map(({ id }) => id),
    ids => !ids.includes(oldBox.id) && ids.length === 2,
    60_000,
  );
  await waitForWarmBrowsers(server, 1);
  await server.release(session.id);
});

test('a warm browser that has died is not claimed, and is replaced', async () => {
  const server = await startServer({ env: { BERTH_WARM: '1' }, clock: 'test' });
  await server.advance(3_000);
  await waitForWarmBrowsers(server, 1);
  const [box] = boxesOf(server.dataDir);
  assert.ok(box, 'the warm browser has processes');
  for (const pid of box.pids) killIfRunning(pid);
  await waitForWarmBrowsers(server, 0);
  const session = await server.createSession();
  assert.ok(boxesOf(server.dataDir).every(({ id }) => id !== box.id));
  const browser = await chromium.connectOverCDP(session.connectUrl);
  assert.equal(await browser.contexts()[0]?.pages()[0]?.evaluate('1 + 1'), 2);
  await browser.close();
  await server.advance(3_000);
  await waitForWarmBrowsers(server, 1);
});

test('a warm browser that has waited for more than 30 minutes is replaced', async () => {
  const server = await startServer({ env: { BERTH_WARM: '1' }, clock: 'test' });
  await server.advance(3_000);
  await waitForWarmBrowsers(server, 1);
  const [first] = boxesOf(server.dataDir);
  assert.ok(first);
  await server.advance(31 * 60_000);
  await eventually(
    'another browser',
    () => boxesOf(server.dataDir).map(box => box.id),
    ids => !ids.includes(first.id),
    60_000,
  );
});

test('after a SIGKILL and a restart of the server, warm browsers are removed and session browsers are adopted', async () => {
  const server = await startServer({ env: { BERTH_WARM: '2' } });
  await waitForWarmBrowsers(server, 2);
  const session = await server.createSession({ keepAlive: true });
  await waitForWarmBrowsers(server, 2);
  const idsBefore = boxesOf(server.dataDir).map(box => box.id);
  assert.equal(idsBefore.length, 3);
  await server.kill('SIGKILL');
  await server.start();
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  const browser = await chromium.connectOverCDP(session.connectUrl);
  assert.equal(await browser.contexts()[0]?.pages()[0]?.evaluate('1 + 1'), 2);
  await browser.close();
  await waitForWarmBrowsers(server, 2);
  await eventually(
    'only the session in use to have outlived the server',
    () => boxesOf(server.dataDir).filter(({ id }) => idsBefore.includes(id)),
    left => left.length === 1,
  );
  await server.release(session.id);
});

test('/readyz returns 503 while browsers fail to start, and 200 once a browser has started', async () => {
  const faultyChromium = await createFaultyChromium();
  const server = await startServer({ env: { BERTH_WARM: '1', BERTH_CHROMIUM: faultyChromium.path } });
  await waitForWarmBrowsers(server, 1);
  assert.ok(installIdOf(server.dataDir));
  faultyChromium.setBehavior('fails');
  const session = await server.createSession();
  const unreadyResponse = await eventually(
    'the server to be reported as not ready',
    () => server.fetchFromOperator('/readyz'),
    ({ status }) => status === 503,
    60_000,
  );
  assert.match(unreadyResponse.text, /in a row did not start/);
  faultyChromium.setBehavior('well');
  await waitForWarmBrowsers(server, 1);
  assert.equal((await server.fetchFromOperator('/readyz')).status, 200);
  await server.release(session.id);
});
