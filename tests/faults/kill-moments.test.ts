// The server is killed while warm browsers are idle, starting, being claimed or failing to start, and while callers are
// queued. Afterwards rows, browsers and slots agree, no leftovers of sessions remain, and every caller can find its
// session by idempotency key and by its metadata.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Session } from '../../contract/sessions.ts';
import { boxesOf } from '../harness/boxes.ts';
import type { HttpResult } from '../harness/http.ts';
import { createOwnerToken, liftLimits, readLimits } from '../harness/limits.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { assertOpenSessionsRespond, listOpenSessions, releaseAll } from './aftermath.ts';
import { assertAgrees } from './count.ts';

const WARM = 1;
const SLOTS = 2;
const SESSIONS = '/v1/browsers/sessions';

const chromium = await createFaultyChromium();
const server = await startServer({
  env: {
    BERTH_CHROMIUM: chromium.path,
    BERTH_WARM: `${WARM}`,
    BERTH_SLOTS: `${SLOTS}`,
    BERTH_ADOPT_GRACE: '60',
  },
});
await liftLimits(server);
const token = await createOwnerToken(server);

afterEach(async () => {
  chromium.setBehavior('well');
  await releaseAll(server);
  await assertAgrees(server, 0, WARM);
});

type ApiResult = HttpResult<ErrorBody & Session>;

interface Caller {
  readonly key: string;
  /** Undefined if the connection was closed without a response. */
  readonly result: Promise<ApiResult | undefined>;
}

const ask = (key: string, headers: Record<string, string> = {}): Promise<ApiResult> =>
  server.api('POST', SESSIONS, {
    body: { keepAlive: true, userMetadata: { key } },
    headers: { 'idempotency-key': key, ...headers },
  });

const call = (headers?: Record<string, string>): Caller => {
  const key = randomUUID();
  return { key, result: ask(key, headers).catch(() => undefined) };
};

/**
 * Waits until all browsers are warm and running, because a later call of `setBehavior` (harness/moody-chromium.ts)
 * could affect a browser that is still starting.
 */
async function waitUntilAllWarm(): Promise<void> {
  await assertAgrees(server, 0, WARM);
  const areAllWarm = async (): Promise<boolean> =>
    (await server.fetchFromOperator('/metrics')).text.includes(`\nberth_warm_browsers ${WARM}\n`);
  await eventually('all warm browsers to be running', areAllWarm);
}

async function findSessions(key: string): Promise<Session[]> {
  const q = encodeURIComponent(`user_metadata['key']:'${key}'`);
  return (await server.api<Session[]>('GET', `${SESSIONS}?q=${q}`)).body;
}

/**
 * Asserts that a caller has at most one session, and that repeating the request with its key returns that session or
 * creates the first one.
 */
async function repeatCreate({ key, result }: Caller): Promise<Session> {
  const firstResponse = await result;
  const sessionsBefore = await findSessions(key);
  assert.ok(sessionsBefore.length <= 1, `${sessionsBefore.length} sessions for one create`);
  if (firstResponse?.status === 201) assert.equal(sessionsBefore[0]?.id, firstResponse.body.id);
  const repeatedResponse = await ask(key);
  assert.equal(repeatedResponse.status, 201, repeatedResponse.text);
  if (sessionsBefore[0]) assert.equal(repeatedResponse.body.id, sessionsBefore[0].id);
  assert.deepEqual(
    (await findSessions(key)).map(({ id }) => id),
    [repeatedResponse.body.id],
  );
  return repeatedResponse.body;
}

async function restartAndAssertAgreement(): Promise<readonly string[]> {
  await server.kill('SIGKILL');
  const boxIdsBefore = boxesOf(server.dataDir).map(({ id }) => id);
  await server.start();
  const openSessionIds = await assertOpenSessionsRespond(server);
  await assertAgrees(server, openSessionIds.length, WARM);
  const keptBoxes = boxesOf(server.dataDir).filter(({ id }) => boxIdsBefore.includes(id));
  assert.equal(keptBoxes.length, openSessionIds.length, 'only the browsers of sessions were adopted');
  return openSessionIds;
}

test('the next server adopts sessions if the server is killed while some browsers are warm and others are in use', async () => {
  await waitUntilAllWarm();
  const session = await server.createSession({ keepAlive: true });
  await assertAgrees(server, 1, WARM);
  assert.deepEqual(await restartAndAssertAgreement(), [session.id]);
});

test('no open row, process or file of a session remains if the server is killed while a warm browser is starting', async () => {
  await waitUntilAllWarm();
  chromium.setBehavior('slow');
  await server.createSession({ keepAlive: true });
  await eventually('a further browser to be starting', () => boxesOf(server.dataDir).length === WARM + 1);
  chromium.setBehavior('well');
  assert.equal((await restartAndAssertAgreement()).length, 1);
});

for (const afterMs of [6, 25])
  test(`confirmed sessions are kept if the server is killed ${afterMs} ms after create requests that use warm or starting browsers`, async () => {
    await waitUntilAllWarm();
    const callers = Array.from({ length: SLOTS }, () => call());
    await new Promise(resolve => setTimeout(resolve, afterMs));
    const openSessionIds = await restartAndAssertAgreement();
    for (const caller of callers) {
      const firstResponse = await caller.result;
      if (firstResponse?.status === 201)
        assert.ok(openSessionIds.includes(firstResponse.body.id), 'a confirmed create still exists');
      const { id, status, endReason } = await repeatCreate(caller);
      if (openSessionIds.includes(id)) assert.equal(status, 'RUNNING');
      else if (status === 'ERROR') assert.equal(endReason, 'service_restart');
    }
  });

test('if the server is killed while a browser start hangs, a repeated create request returns the same session, which ended if it was pending', async () => {
  await waitUntilAllWarm();
  chromium.setBehavior('hangs');
  const callers = Array.from({ length: SLOTS }, () => call());
  const openRows = await eventually(
    'a warm browser for one caller and a pending session for the other',
    () => listOpenSessions(server),
    rows => rows.length === SLOTS && rows.filter(({ status }) => status === 'PENDING').length === SLOTS - WARM,
  );
  const pendingIds = new Set(openRows.flatMap(({ id, status }) => (status === 'PENDING' ? [id] : [])));
  await server.kill('SIGKILL');
  chromium.setBehavior('well');
  await server.start();
  await assertAgrees(server, (await assertOpenSessionsRespond(server)).length, WARM);
  for (const caller of callers) {
    const { id, status, endReason } = await repeatCreate(caller);
    if (pendingIds.has(id)) assert.deepEqual([status, endReason], ['ERROR', 'service_restart']);
    else assert.equal(status, 'RUNNING');
  }
});

test('queued callers are disconnected if the server is killed, and get a session when they repeat the request', async () => {
  const sessions = await Promise.all(Array.from({ length: SLOTS }, () => server.createSession({ keepAlive: true })));
  const callers = [1, 2].map(() => call({ prefer: 'wait=50' }));
  const readQueueLength = async () => (await readLimits(server, token)).usage.browsers.maxWaiting;
  await eventually('both calls to be queued', readQueueLength, count => count === callers.length);
  await restartAndAssertAgreement();
  for (const { key, result } of callers) {
    assert.equal(await withTimeLimit('the caller to be cut off', result), undefined);
    assert.deepEqual(await findSessions(key), [], 'a queued caller has no session');
    // The application's limit was raised to its maximum, the number of slots.
    assert.equal((await ask(key)).body.code, 'concurrency_limit', 'the limit of the application is still reached');
  }
  await Promise.all(sessions.map(({ id }) => server.release(id)));
  for (const caller of callers) assert.equal((await repeatCreate(caller)).status, 'RUNNING');
});

for (const afterMs of [15, 60])
  test(`a queued caller gets at most one session if the server is killed ${afterMs} ms after a slot became free`, async () => {
    const sessions = await Promise.all(Array.from({ length: SLOTS }, () => server.createSession({ keepAlive: true })));
    const waitingCaller = call({ prefer: 'wait=50' });
    const readQueueLength = async () => (await readLimits(server, token)).usage.browsers.maxWaiting;
    await eventually('the call to be queued', readQueueLength, count => count === 1);
    const [leavingSession] = sessions;
    const leavingId = leavingSession?.id ?? '';
    const pendingRelease = server.release(leavingId).catch(() => undefined);
    await new Promise(resolve => setTimeout(resolve, afterMs));
    await restartAndAssertAgreement();
    await pendingRelease;
    // If the server was killed before the release was stored, the session continues and the caller repeats the release.
    if ((await server.read(leavingId)).status === 'RUNNING') await server.release(leavingId).catch(() => undefined);
    await server.waitUntilEnded(leavingId);
    const { status, endReason } = await repeatCreate(waitingCaller);
    if (status === 'ERROR') assert.equal(endReason, 'service_restart');
    else assert.equal(status, 'RUNNING');
  });
