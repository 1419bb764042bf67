// The server is killed with SIGKILL while everything is in use, and restarted on the same data folder. Running sessions
// continue with the same addresses and deadlines. All other sessions end with a reason and leave nothing behind.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { releaseAll } from './aftermath.ts';
import {
  connectPlaywright,
  connectPuppeteer,
  contextOf,
  firstPage,
  isResponsive,
  startFloodingClient,
  startIdleClient,
  startPopupWaiter,
  startPuppeteerClient,
  startRouteHolder,
  waitForDisconnect,
} from './clients.ts';

/** Less than the minute for which a client may be silent, because the clock is advanced in one step. */
const ADOPT_GRACE_SECONDS = 45;
const MARKER = 'kept in the heap of the page';

const chromium = await createFaultyChromium();
const pages = await openPages({ '/held': '<title>Held</title>' });
const server = await startServer({
  pages,
  clock: 'test',
  env: { BERTH_ADOPT_GRACE: `${ADOPT_GRACE_SECONDS}`, BERTH_CHROMIUM: chromium.path, BERTH_SLOTS: '8' },
});

afterEach(() => releaseAll(server));

const listByStatus = (status: string) =>
  server.api<Session[]>('GET', `/v1/browsers/sessions?status=${status}`).then(({ body }) => body);

test('after a kill under load, running sessions keep their deadlines, and starting, expired and abandoned sessions end with matching reasons', async () => {
  const shortSession = await server.createSession({ timeout: 60, keepAlive: true });
  await server.advance(55_000);
  const keptSession = await server.createSession({ keepAlive: true });
  const abandonedSession = await server.createSession();
  const returningSession = await server.createSession();
  const unvisitedSession = await server.createSession();
  const busyClients = [
    await startRouteHolder(keptSession, `${pages.url}/`, MARKER),
    await startPopupWaiter(keptSession, `${pages.url}/popups`),
    await startPuppeteerClient(keptSession, `${pages.url}/next`),
    await startFloodingClient(keptSession),
    await startIdleClient(abandonedSession),
    await startIdleClient(returningSession),
  ];
  chromium.setBehavior('hangs');
  const lostCreate = server.api('POST', '/v1/browsers/sessions', { body: {} }).catch(() => undefined);
  const [startingSession] = await eventually(
    'a session to be starting',
    () => listByStatus('PENDING'),
    rows => rows.length > 0,
  );

  await server.kill('SIGKILL');
  await withTimeLimit('every client to be disconnected', Promise.all(busyClients.map(({ ended }) => ended)));
  await lostCreate;
  chromium.setBehavior('well');
  await eventually('the short session to be overdue', () => server.now() > new Date(shortSession.expiresAt));
  const killedAtMs = server.now().getTime();
  await server.start();

  // This client connects first, because it must connect within the grace period.
  const returningClient = await CdpClient.connect(returningSession.connectUrl);
  assert.equal((await server.read(abandonedSession.id)).status, 'RUNNING', 'clients have time to reconnect');
  await assertContinues(keptSession);
  await assertNothingHeldByDeadClients(keptSession);
  await assertHeapIsKept(keptSession);
  await assertEndedAs(shortSession, 'TIMED_OUT', 'timed_out');
  assert.ok(startingSession);
  await assertEndedAs(startingSession, 'ERROR', 'service_restart');

  await returningClient.send('Browser.getVersion');
  await server.advance((ADOPT_GRACE_SECONDS + 1) * 1000);
  const endedSession = await assertEndedAs(abandonedSession, 'COMPLETED', 'client_disconnected');
  const waitedMs = Date.parse(String(endedSession.endedAt)) - killedAtMs;
  assert.ok(waitedMs >= ADOPT_GRACE_SECONDS * 1000, `ended after ${waitedMs} ms`);
  for (const session of [keptSession, returningSession, unvisitedSession]) await assertContinues(session);
  assert.ok(returningClient.isOpen);
  await returningClient.close();
  await server.waitUntilSettled([keptSession.id, returningSession.id, unvisitedSession.id]);
  for (const session of [keptSession, unvisitedSession]) await server.release(session.id);
  await server.advance(5_000);
  await assertEndedAs(returningSession, 'COMPLETED', 'client_disconnected');
  await server.waitUntilSettled();
});

async function assertContinues(session: CreatedSession): Promise<void> {
  const { status, expiresAt, connectUrl, startedAt } = await server.read(session.id);
  const { expiresAt: expectedExpiresAt, connectUrl: expectedConnectUrl, startedAt: expectedStartedAt } = session;
  assert.deepEqual(
    { status, expiresAt, connectUrl, startedAt },
    {
      status: 'RUNNING',
      expiresAt: expectedExpiresAt,
      connectUrl: expectedConnectUrl,
      startedAt: expectedStartedAt,
    },
  );
}

async function assertEndedAs({ id }: Session, status: string, endReason: string): Promise<Session> {
  const session = await server.waitUntilEnded(id);
  assert.deepEqual({ status: session.status, endReason: session.endReason }, { status, endReason });
  return session;
}

/** Asserts that requests and targets that a dead client had paused do not block later clients. */
async function assertNothingHeldByDeadClients(session: CreatedSession): Promise<void> {
  const browser = await connectPlaywright(session);
  const page = await contextOf(browser).newPage();
  await page.goto(`${pages.url}/popups`);
  const [popup] = await Promise.all([page.waitForEvent('popup'), page.click('#open')]);
  await popup.waitForURL('**/next');
  assert.equal(await popup.title(), 'Next');
  await page.goto(`${pages.url}/held`);
  assert.equal(await page.title(), 'Held');
  await browser.close();
  const secondBrowser = await connectPuppeteer(session);
  const secondPage = await secondBrowser.newPage();
  await secondPage.goto(`${pages.url}/next`);
  assert.equal(await secondPage.title(), 'Next');
  await secondBrowser.disconnect();
}

async function assertHeapIsKept(session: CreatedSession): Promise<void> {
  const browser = await connectPlaywright(session);
  const page = contextOf(browser)
    .pages()
    .find(each => each.url() === `${pages.url}/`);
  assert.ok(page, 'the page is still open');
  assert.equal(await page.evaluate('globalThis.marker'), MARKER);
  await page.goto(`${pages.url}/next`);
  assert.equal(await page.title(), 'Next');
  await browser.close();
}

test('a page keeps its state when the server is killed three times in succession', async () => {
  const session = await server.createSession({ keepAlive: true });
  for (let times = 1; times <= 3; times++) {
    const browser = await connectPlaywright(session);
    const page = firstPage(browser);
    const count = await page.evaluate('globalThis.kills = (globalThis.kills ?? 0) + 1');
    assert.equal(count, times);
    const gone = waitForDisconnect(browser);
    await server.restart();
    await gone;
  }
  assert.ok(await isResponsive(session));
  await server.release(session.id);
  await server.waitUntilSettled();
});

test('the next server adopts the sessions if a server is killed during its start', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.kill();
  for (const afterMs of [150, 400, 700, 1000]) {
    const pendingStart = server.start().catch(() => {});
    await new Promise(resolve => setTimeout(resolve, afterMs));
    await server.kill().catch(() => {});
    await pendingStart;
  }
  await server.start();
  await assertContinues(session);
  assert.ok(await isResponsive(session));
  await server.release(session.id);
  await server.waitUntilSettled();
});
