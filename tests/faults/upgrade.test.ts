// The ways to stop a server: SIGTERM leaves running sessions to the next server, SIGINT ends them first, and `berth
// stop` leaves nothing running.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { findSessionLeftovers } from '../harness/leftovers.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { browserProcessOf } from '../harness/session-processes.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { assertEnded, assertOpenSessionsRespond, listOpenSessions, releaseAll } from './aftermath.ts';
import {
  connectPlaywright,
  connectPuppeteer,
  firstPage,
  isResponsive,
  startFloodingClient,
  waitForDisconnect,
} from './clients.ts';
import { isGone, postgresOf } from './victims.ts';

/** Shorter than the 60 s that a supervisor waits before it sends SIGKILL (`deploy/`), but long enough for a busy machine. */
const STOP_MS_MAX = 40_000;
const HANGING_STOP_MS_MAX = 15_000;
const chromium = await createFaultyChromium();
const pages = await openPages();
const server = await startServer({
  pages,
  env: { BERTH_SLOTS: '8', BERTH_CHROMIUM: chromium.path, BERTH_ADOPT_GRACE: '600' },
});
let isRunning = true;

beforeEach(async () => {
  if (!isRunning) await server.start();
  isRunning = true;
});
afterEach(async () => {
  chromium.setBehavior('well');
  if (isRunning) await releaseAll(server);
});

/** Stops the server and its database, and returns how long that took. */
async function stop(signal: NodeJS.Signals): Promise<number> {
  const startedAt = performance.now();
  const postmaster = postgresOf(server)?.postmaster;
  const code = await server.kill(signal);
  isRunning = false;
  assert.equal(code, 0, `exit code after ${signal}`);
  assert.ok(postmaster && isGone(postmaster), 'PostgreSQL stopped with the server');
  return performance.now() - startedAt;
}

async function start(): Promise<void> {
  await server.start();
  isRunning = true;
}

test('after SIGTERM, the connections of active clients are closed with code 1001, the process exits in time, and the next server adopts the sessions', async () => {
  const session = await server.createSession({ keepAlive: true });
  const guestSession = await server.createSession();
  const rawClient = await CdpClient.connect(session.connectUrl);
  const guestClient = await CdpClient.connect(guestSession.connectUrl);
  const flood = await startFloodingClient(session);
  const playwright = await connectPlaywright(session);
  const page = firstPage(playwright);
  await page.goto(`${pages.url}/`);
  await page.evaluate("void (globalThis.marker = 'mine')");
  await page.route('**/held', () => {});
  await page.evaluate("void fetch('/held')");
  const puppeteer = await connectPuppeteer(session);
  const disconnects = [
    waitForDisconnect(playwright),
    new Promise<void>(resolve => void puppeteer.once('disconnected', () => resolve())),
  ];

  const tookMs = await stop('SIGTERM');
  assert.ok(tookMs < STOP_MS_MAX, `${tookMs} ms`);
  for (const client of [rawClient, guestClient]) assert.equal((await client.waitForClose()).code, 1001);
  await withTimeLimit('the clients to be disconnected', Promise.all([...disconnects, flood.ended]));
  await start();

  const { status, expiresAt, connectUrl } = await server.read(session.id);
  assert.deepEqual([status, expiresAt, connectUrl], ['RUNNING', session.expiresAt, session.connectUrl]);
  const secondConnection = await connectPlaywright(session);
  const samePage = secondConnection
    .contexts()[0]
    ?.pages()
    .find(each => each.url() === `${pages.url}/`);
  assert.equal(await samePage?.evaluate('globalThis.marker'), 'mine');
  await samePage?.goto(`${pages.url}/next`);
  assert.equal(await samePage?.title(), 'Next');
  await secondConnection.close();
  assert.equal((await server.read(guestSession.id)).status, 'RUNNING', 'clients have time to reconnect');
  await server.waitUntilSettled([session.id, guestSession.id]);
});

test('after SIGTERM, the server does not wait long for the browser of a running session that hangs, and the next server adopts the session', async () => {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  await client.evaluate("void (globalThis.marker = 'mine')", await client.attachToPage());
  const { pid } = browserProcessOf(session.id);
  process.kill(pid, 'SIGSTOP');
  const tookMs = await stop('SIGTERM').finally(() => process.kill(pid, 'SIGCONT'));
  assert.ok(tookMs < HANGING_STOP_MS_MAX, `${tookMs} ms`);
  assert.equal((await client.waitForClose()).code, 1001);
  await start();
  const nextClient = await CdpClient.connect(session.connectUrl);
  assert.equal(await nextClient.evaluate('globalThis.marker', await nextClient.attachToPage()), 'mine');
  await server.waitUntilSettled([session.id]);
});

test('every session whose create request succeeds while the server handles SIGTERM exists after the restart', async () => {
  const pendingCreates = Array.from({ length: 3 }, () =>
    server.api<CreatedSession>('POST', '/v1/browsers/sessions', { body: { keepAlive: true } }).catch(() => undefined),
  );
  await eventually(
    'the creates to have begun',
    () => listOpenSessions(server),
    rows => rows.length === 3,
  );
  assert.ok((await stop('SIGTERM')) < STOP_MS_MAX);
  const responses = await Promise.all(pendingCreates);
  await start();
  const openIds = await assertOpenSessionsRespond(server);
  for (const response of responses) {
    if (response?.status === 201) assert.ok(openIds.includes(response.body.id), 'a confirmed create still exists');
    else if (response) assert.equal(response.status, 503, response.text);
  }
  await server.waitUntilSettled(openIds);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  test(`after ${signal}, the server does not wait for a browser that hangs, and no process or file of its session remains`, async () => {
    chromium.setBehavior('hangs');
    const pendingCreate = server.api('POST', '/v1/browsers/sessions', { body: {} });
    pendingCreate.catch(() => {}); // tested below
    const [row] = await eventually(
      'the create to have begun',
      () => listOpenSessions(server),
      rows => rows.length === 1 && rows[0]?.status === 'PENDING',
    );
    assert.ok((await stop(signal)) < STOP_MS_MAX);
    const { status, body } = await pendingCreate;
    assert.deepEqual([status, body.code], [503, 'capacity']);
    assert.deepEqual(findSessionLeftovers(server.dataDir), []);
    await start();
    await assertEnded(server, String(row?.id), 'ERROR', 'service_restart');
  });

test('SIGINT ends every session as COMPLETED / drained', async () => {
  const session = await server.createSession({ keepAlive: true });
  const otherSession = await server.createSession();
  const client = await CdpClient.connect(session.connectUrl);
  assert.ok((await stop('SIGINT')) < STOP_MS_MAX);
  const { code, reason } = await client.waitForClose();
  assert.deepEqual({ code, reason }, { code: 1000, reason: 'session ended: drained' });
  assert.deepEqual(findSessionLeftovers(server.dataDir), []);
  await start();
  for (const { id } of [session, otherSession]) await assertEnded(server, id, 'COMPLETED', 'drained');
});

/** Starts a create whose body never arrives. A stopping server waits for the body for a limited time. */
async function startRequest(): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const head = ['POST /v1/browsers/sessions HTTP/1.1', `Host: ${hostname}`, `Authorization: Bearer ${server.key}`];
  const body = ['Content-Type: application/json', 'Content-Length: 2', 'Expect: 100-continue', '', ''];
  socket.write([...head, ...body].join('\r\n'));
  const [response] = await withTimeLimit('the server to ask for the body', once(socket, 'data'));
  assert.match(String(response), /^HTTP\/1\.1 100 /);
  return socket;
}

test('further signals while the server is stopping have no effect', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { pid } = server;
  const lineCountBefore = server.log().length;
  const heldSocket = await startRequest();
  const pendingStop = stop('SIGTERM');
  // Of several pending signals, the kernel delivers the one with the lowest number first. SIGTERM must therefore be
  // handled before the others are sent.
  await eventually('the first signal to be handled', () =>
    server
      .log()
      .slice(lineCountBefore)
      .some(line => line.includes('service.stopping')),
  );
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(pid, signal);
  heldSocket.destroy();
  await pendingStop;
  await start();
  assert.ok(await isResponsive(session));
});

test('berth stop --drain ends all sessions and stops the server, and another berth stop finds no server to stop', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { code, stdout } = await server.berth('stop', '--drain', '--json');
  isRunning = false;
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).ended, []);
  assert.deepEqual(findSessionLeftovers(server.dataDir), []);
  const secondStop = await server.berth('stop', '--json');
  assert.deepEqual(
    { code: secondStop.code, ...JSON.parse(secondStop.stdout) },
    { code: 0, stopped: false, ended: [], swept: [] },
  );
  await start();
  await assertEnded(server, session.id, 'COMPLETED', 'drained');
});

test('berth stop shuts down the server and the browsers that are still running', async () => {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const { code, stdout } = await server.berth('stop', '--json');
  isRunning = false;
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).ended, [session.id]);
  assert.equal((await client.waitForClose()).code, 1001);
  assert.deepEqual(findSessionLeftovers(server.dataDir), []);
  await start();
  await assertEnded(server, session.id, 'COMPLETED', 'operator');
});

test('berth stop shuts down the browsers that are still running after the server was killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.kill('SIGKILL');
  isRunning = false;
  const { code, stdout } = await server.berth('stop', '--json');
  assert.equal(code, 0);
  const { stopped, ended, swept } = JSON.parse(stdout);
  assert.deepEqual({ stopped, ended, swept }, { stopped: false, ended: [session.id], swept: [session.id] });
  assert.deepEqual(findSessionLeftovers(server.dataDir), []);
  await start();
  await assertEnded(server, session.id, 'COMPLETED', 'operator');
});
