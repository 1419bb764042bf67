import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import puppeteer from 'puppeteer-core';
import type { ErrorBody } from '../../contract/common.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { startServer } from '../harness/server.ts';
import { waitForSessionEvent } from '../harness/session-events.ts';
import { browserProcessOf } from '../harness/session-processes.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const SECOND_MS = 1000;
/** The grace period, longer than the default of two seconds, so that a client can connect in time on a busy machine. */
const GRACE_MS = 20 * SECOND_MS;
/** The interval of pings. A client that answers a ping is considered connected. */
const PING_INTERVAL_MS = 20 * SECOND_MS;

/** More than the buffers at both ends of a connection can hold. */
const LONG_RESPONSE_BYTES = 16 * 1024 ** 2;

const server = await startServer({
  clock: 'test',
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_DISCONNECT_GRACE: `${GRACE_MS / SECOND_MS}` },
});

const assertRuns = async (id: string): Promise<void> => assert.equal((await server.read(id)).status, 'RUNNING');

const readEvents = async (id: string, types: string): Promise<SessionEventPage['data']> =>
  (await server.api<SessionEventPage>('GET', `/v1/browsers/sessions/${id}/events?type=${types}`)).body.data;

/** Waits until the server has recorded the disconnect, then advances the clock by the grace period. */
async function waitOutGracePeriod(id: string): Promise<void> {
  await eventually(
    'the last client to be gone',
    async () => (await readEvents(id, 'client.connected,client.disconnected')).at(-1),
    last => last?.type === 'client.disconnected' && last.detail.clients === 0,
  );
  await server.advance(GRACE_MS + SECOND_MS);
}

async function assertEnded(id: string, status: Session['status'], endReason: Session['endReason']): Promise<void> {
  const session = await server.waitUntilEnded(id);
  assert.equal(session.status, status);
  assert.equal(session.endReason, endReason);
  assert.ok(Date.parse(session.endedAt ?? '') >= Date.parse(session.startedAt));
}

test('a page keeps its state while fifty clients connect in turn, half of which are cut off without a close', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  for (let count = 1; count <= 50; count += 1) {
    const client = await CdpClient.connect(connectUrl);
    const seen = await client.evaluate('globalThis.seen = (globalThis.seen ?? 0) + 1', await client.attachToPage());
    assert.equal(seen, count);
    if (count % 2 === 0) await client.close();
    else client.cut();
  }
  await assertRuns(id);
  await server.release(id);
});

test('a session ends at its time limit even if it has keepAlive and a client, and the client is closed with 4001', async () => {
  const keepAliveSession = await server.createSession({ timeout: 120, keepAlive: true });
  const plainSession = await server.createSession({ timeout: 120 });
  const client = await CdpClient.connect(keepAliveSession.connectUrl);
  await server.advance(50 * SECOND_MS);
  await assertRuns(keepAliveSession.id);
  await assertRuns(plainSession.id);
  // Advances in steps, because a client that sends nothing for 55 seconds is disconnected.
  await client.send('Browser.getVersion');
  await server.advance(35 * SECOND_MS);
  await client.ask('Browser.getVersion');
  await server.advance(36 * SECOND_MS);
  const { code, reason } = await client.waitForClose();
  assert.equal(code, 4001);
  assert.match(reason, /timed_out/);
  await assertEnded(keepAliveSession.id, 'TIMED_OUT', 'timed_out');
  await assertEnded(plainSession.id, 'TIMED_OUT', 'timed_out');
  await server.waitUntilSettled();
});

test('an extended time limit of a running session takes effect', async () => {
  const { id } = await server.createSession({ timeout: 60, keepAlive: true });
  const updateResponse = await server.api<Session>('POST', `/v1/browsers/sessions/${id}`, { body: { timeout: 120 } });
  assert.equal(updateResponse.status, 200);
  await server.advance(90 * SECOND_MS);
  await assertRuns(id);
  await server.advance(31 * SECOND_MS);
  await assertEnded(id, 'TIMED_OUT', 'timed_out');
});

test('a session without clients ends after 300 seconds, unless it has keepAlive', async () => {
  const plainSession = await server.createSession();
  const keepAliveSession = await server.createSession({ keepAlive: true });
  await server.advance(240 * SECOND_MS);
  await assertRuns(plainSession.id);
  await server.advance(61 * SECOND_MS);
  await assertEnded(plainSession.id, 'TIMED_OUT', 'connect_timeout');
  await assertRuns(keepAliveSession.id);
  await server.release(keepAliveSession.id);
});

test('a session waits for another client during the grace period after its last client disconnected', async () => {
  const { id, connectUrl } = await server.createSession();
  const firstClient = await CdpClient.connect(connectUrl);
  const secondClient = await CdpClient.connect(connectUrl);
  await firstClient.close();
  await server.advance(2 * GRACE_MS);
  await assertRuns(id);
  await secondClient.close();
  const thirdClient = await CdpClient.connect(connectUrl);
  await server.advance(2 * GRACE_MS);
  await assertRuns(id);
  await thirdClient.close();
  await waitOutGracePeriod(id);
  await assertEnded(id, 'COMPLETED', 'client_disconnected');
});

test('a client with a broken connection counts as disconnected', async () => {
  const { id, connectUrl } = await server.createSession();
  const client = await CdpClient.connect(connectUrl);
  client.cut();
  await waitOutGracePeriod(id);
  await assertEnded(id, 'COMPLETED', 'client_disconnected');
});

test('a session with keepAlive continues after its clients disconnect, and another client can connect to the same address', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  await client.close();
  await server.advance(1000 * SECOND_MS);
  await assertRuns(id);
  const next = await CdpClient.connect(connectUrl);
  assert.match(String((await next.send('Browser.getVersion')).product), /^(Headless)?Chrome\//);
  await next.close();
  await server.release(id);
});

test('Browser.close ends a session', async () => {
  const { id, connectUrl } = await server.createSession();
  const client = await CdpClient.connect(connectUrl);
  assert.deepEqual(await client.send('Browser.close'), {});
  assert.equal((await client.waitForClose()).code, 1000);
  await assertEnded(id, 'COMPLETED', 'browser_closed');
});

test('in a session with keepAlive, Browser.close disconnects only the client that sent the command', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const remainingClient = await CdpClient.connect(connectUrl);
  const closingClient = await CdpClient.connect(connectUrl);
  assert.deepEqual(await closingClient.send('Browser.close'), {});
  assert.equal((await closingClient.waitForClose()).code, 1000);
  await remainingClient.send('Browser.getVersion');
  await remainingClient.close();
  await assertRuns(id);
  const browser = await puppeteer.connect({ browserWSEndpoint: connectUrl, defaultViewport: null });
  await browser.close();
  await server.advance(100 * SECOND_MS);
  await assertRuns(id);
  await server.release(id);
});

test('releasing a session closes its clients with 1000, and later connections to its address are refused with 410', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  await server.release(id);
  assert.equal((await client.waitForClose()).code, 1000);
  const refusal = await expectUpgradeRefusal(connectUrl);
  assert.equal(refusal.status, 410);
  assert.equal(refusal.body.code, 'session_ended');
  assert.deepEqual(refusal.body.details, { status: 'COMPLETED', endReason: 'released' });
});

test('a session whose browser is killed ends with the reason crashed, and its clients are closed with 4002', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  process.kill(browserProcessOf(id).pid, 'SIGKILL');
  assert.equal((await client.waitForClose()).code, 4002);
  await assertEnded(id, 'ERROR', 'crashed');
  await server.waitUntilSettled();
});

test('a client that sends no commands for 600 seconds is closed with 4003 and counts as disconnected', async () => {
  const { id, connectUrl } = await server.createSession();
  const idle = await CdpClient.connect(connectUrl);
  const busyClient = await CdpClient.connect(connectUrl);
  for (let ms = 0; ms <= 600 * SECOND_MS + PING_INTERVAL_MS && idle.isOpen; ms += PING_INTERVAL_MS) {
    await server.advance(PING_INTERVAL_MS);
    await busyClient.send('Browser.getVersion');
  }
  assert.equal((await idle.waitForClose()).code, 4003);
  const [disconnectEvent] = await eventually(
    'the disconnection event of the client',
    () => readEvents(id, 'client.disconnected'),
    events => events.length > 0,
  );
  assert.deepEqual(disconnectEvent?.detail, { clients: 1, why: 'no command was received for 600 seconds' });
  await busyClient.send('Browser.getVersion');
  await assertRuns(id);
  await busyClient.close();
  await waitOutGracePeriod(id);
  await assertEnded(id, 'COMPLETED', 'client_disconnected');
});

const connectWithoutPongs = (url: string): Promise<CdpClient> =>
  CdpClient.connect(url, {}, undefined, { autoPong: false });

test('a client that neither responds to pings nor sends any part of a command is disconnected after a minute', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const silentClient = await connectWithoutPongs(connectUrl);
  const talkingClient = await connectWithoutPongs(connectUrl);
  const sendingClient = await connectWithoutPongs(connectUrl);
  for (const part of ['{"id":1,', '"method":', '"Browser', '.get', 'Version"', ' ']) {
    sendingClient.sendFragment(part);
    await talkingClient.send('Browser.getVersion');
    await server.advance(PING_INTERVAL_MS);
  }
  await silentClient.waitForClose();
  const [disconnectEvent] = await eventually(
    'the disconnection event of the client',
    () => readEvents(id, 'client.disconnected'),
    events => events.length > 0,
  );
  assert.equal(disconnectEvent?.detail.clients, 2);
  // More than 60 seconds are possible, because the clock also runs by itself.
  assert.match(String(disconnectEvent?.detail.why), /^the client sent nothing for 6[0-4] seconds$/);
  const reply = sendingClient.next('the answer to a command of two minutes', message => message.id === 1);
  sendingClient.sendRaw('}');
  assert.ok((await reply).result);
  assert.ok(talkingClient.isOpen);
  await Promise.all([talkingClient.close(), sendingClient.close()]);
  await server.release(id);
});

test('a client that vanishes between two pings is disconnected about a minute after its last command', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const vanishingClient = await connectWithoutPongs(connectUrl);
  await server.advance(10 * SECOND_MS);
  await vanishingClient.send('Browser.getVersion');
  for (const seconds of [10, 20, 20, 6]) await server.advance(seconds * SECOND_MS);
  await vanishingClient.waitForClose();
  const [disconnectEvent] = await waitForSessionEvent(server, id, 'client.disconnected');
  const [, seconds] = /^the client sent nothing for (\d+) seconds$/.exec(String(disconnectEvent?.detail.why)) ?? [];
  // This number may be more than the 56 seconds by which the test advances the clock, because the clock also runs by
  // itself.
  assert.ok(Number(seconds) < 65, `after ${seconds} seconds`);
  await server.release(id);
});

test('a client that stops reading is not disconnected while a ping waits behind a long response', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const slowClient = await CdpClient.connect(connectUrl);
  const page = await slowClient.attachToPage();
  const reply = slowClient.evaluate(`'x'.repeat(${LONG_RESPONSE_BYTES})`, page);
  slowClient.stall();
  const secondClient = await CdpClient.connect(connectUrl);
  // The page responds in order, so the long response has already been written.
  await secondClient.evaluate('1', await secondClient.attachToPage());
  for (let ms = 0; ms < 5 * 60 * SECOND_MS; ms += PING_INTERVAL_MS) {
    await secondClient.send('Browser.getVersion');
    await server.advance(PING_INTERVAL_MS);
  }
  slowClient.resume();
  assert.equal(String(await reply).length, LONG_RESPONSE_BYTES);
  for (const client of [slowClient, secondClient]) await client.close();
  await server.release(id);
});

test('SIGTERM closes the clients with 1001 and keeps the session running for the next server', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.evaluate('globalThis.left = "here"', page);
  assert.equal(await server.kill('SIGTERM'), 0);
  assert.equal((await client.waitForClose()).code, 1001);
  await server.start();
  await assertRuns(id);
  const next = await CdpClient.connect(connectUrl);
  assert.equal(await next.evaluate('globalThis.left', await next.attachToPage()), 'here');
  await next.close();
  await server.release(id);
});

test('a session whose client does not return after a restart is still running after 15 seconds, and has ended after 31 seconds', async () => {
  const { id, connectUrl } = await server.createSession();
  const client = await CdpClient.connect(connectUrl);
  await eventually(
    'the event of the connected client',
    async () => (await readEvents(id, 'client.connected')).length > 0,
  );
  await server.restart();
  assert.equal((await client.waitForClose()).code, 1006);
  await server.advance(15 * SECOND_MS);
  await assertRuns(id);
  await server.advance(16 * SECOND_MS);
  await assertEnded(id, 'COMPLETED', 'client_disconnected');
});

test('SIGINT ends all sessions with the reason drained before the server exits', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const otherSession = await server.createSession();
  const client = await CdpClient.connect(connectUrl);
  assert.equal(await server.kill('SIGINT'), 0);
  assert.equal((await client.waitForClose()).code, 1000);
  await server.start();
  await assertEnded(id, 'COMPLETED', 'drained');
  await assertEnded(otherSession.id, 'COMPLETED', 'drained');
});

/** Starts a create whose body is still missing. Returns when the server has received its headers. */
async function beginCreate(): Promise<{ finish: (body: object) => Promise<IncomingMessage> }> {
  const requestId = randomUUID();
  const outgoingRequest = request(`${server.url}/v1/browsers/sessions`, {
    ...{ method: 'POST', agent: false },
    headers: {
      authorization: `Bearer ${server.key}`,
      'content-type': 'application/json',
      'x-request-id': requestId,
    },
  });
  const responseEvent = once(outgoingRequest, 'response');
  outgoingRequest.flushHeaders();
  await eventually('the create to be received', () =>
    server.log().some(line => line.includes(requestId) && line.includes('createSession.begin')),
  );
  const finish = async (body: object): Promise<IncomingMessage> => {
    outgoingRequest.end(JSON.stringify(body));
    const [response] = await withTimeLimit('the response to the create', responseEvent);
    return response;
  };
  return { finish };
}

test('a server that is shutting down refuses creates, and marks the refusal as retryable', async () => {
  const { connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  // The create begins before the signal. Soon after the signal, the server accepts no new connections, but it still
  // waits for requests that it has received.
  const pendingCreate = await beginCreate();
  const exitCode = server.kill('SIGINT');
  // The server starts to refuse creates before it ends the sessions.
  assert.equal((await client.waitForClose()).code, 1000);
  const response = await pendingCreate.finish({});
  const body: ErrorBody = JSON.parse(await text(response));
  assert.deepEqual([response.statusCode, body.code], [503, 'capacity']);
  assert.equal(response.headers['x-should-retry'], 'true');
  assert.equal(await exitCode, 0);
  await server.start();
  await server.waitUntilSettled();
});
