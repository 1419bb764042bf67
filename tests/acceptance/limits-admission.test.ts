// Many concurrent creates for ten slots: the limit is never exceeded, refusals name the limit, and the queue keeps its
// order.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Limits } from '../../contract/limits.ts';
import type { Session } from '../../contract/sessions.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import type { HttpResult } from '../harness/http.ts';
import { createOwnerToken, readLimits, setLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const CONCURRENT_MAX = 10;
const WAITING_MAX = 5;
const MINUTE_MS = 60_000;
const SESSIONS = '/v1/browsers/sessions';

type CreateResult = HttpResult<ErrorBody & Session>;

const pages = await openPages({
  '/slow': () => {}, // never answers
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '12', BERTH_WARM: '0', BERTH_ENGINE: LIGHT_ENGINE } });
const token = await createOwnerToken(server);

const create = (name: string, waitSeconds?: number, key = server.key): Promise<CreateResult> =>
  server.api('POST', SESSIONS, {
    key,
    body: { keepAlive: true, userMetadata: { name } },
    headers: waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` },
  });

function tally(responses: readonly CreateResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of responses) {
    const outcome = status === 201 ? '201' : `${status} ${body.code}`;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

const countWaiting = async (): Promise<number> => (await readLimits(server, token)).usage.browsers.maxWaiting;
const waitUntilQueued = (count: number): Promise<number> =>
  eventually(`${count} creates to be queued`, countWaiting, seen => seen === count, 30_000);

const listRunning = async (): Promise<Session[]> => {
  const { body } = await server.api<Session[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  return body.reverse();
};

const nameOf = (session: Session | undefined): unknown => session?.userMetadata?.name;

/** Sends a create, and resolves when the whole request has been sent. `hangUp` closes the connection of the request. */
async function startCreate(waitSeconds: number): Promise<{ hangUp: () => void }> {
  const outgoingRequest = request(`${server.url}${SESSIONS}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.key}`, prefer: `wait=${waitSeconds}` },
    agent: false,
  });
  outgoingRequest.on('error', () => {}); // Closing the connection causes an error.
  await new Promise<void>(resolve => outgoingRequest.end(resolve));
  return { hangUp: () => void outgoingRequest.destroy() };
}

test('with a limit of ten sessions, ten of a hundred concurrent creates start, and the other ninety are refused with the details of the limit', async () => {
  await setLimits(server, token, { maxConcurrent: CONCURRENT_MAX, maxWaiting: WAITING_MAX });
  const beganMs = performance.now();
  const responses = await Promise.all(Array.from({ length: 100 }, (_, index) => create(`crowd ${index}`)));
  assert.deepEqual(tally(responses), { 201: CONCURRENT_MAX, '429 concurrency_limit': 90 });
  const admittedCreates = responses.filter(({ status }) => status === 201);
  for (const { headers } of admittedCreates) {
    assert.equal(headers['x-ratelimit-limit'], String(CONCURRENT_MAX));
    assert.ok(Number(headers['x-ratelimit-remaining']) < CONCURRENT_MAX);
  }
  assert.deepEqual(
    new Set(admittedCreates.map(({ headers }) => headers['x-ratelimit-remaining'])).size,
    CONCURRENT_MAX,
    'each took one seat',
  );
  for (const { status, headers, body } of responses.filter(result => result.status !== 201)) {
    assert.deepEqual([status, body.code], [429, 'concurrency_limit']);
    assert.match(body.message, /max concurrent sessions limit \(limit 10, currently 10\)/);
    assert.deepEqual(body.details, {
      limit: CONCURRENT_MAX,
      used: CONCURRENT_MAX,
      scope: 'application',
      retryAfterSeconds: 5,
    });
    assert.equal(headers['x-should-retry'], 'true');
    assert.deepEqual([headers['retry-after'], headers['x-ratelimit-reset']], ['5', '5']);
    assert.deepEqual([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']], ['10', '0']);
  }
  assert.equal((await listRunning()).length, CONCURRENT_MAX);
  const { usage } = await readLimits(server, token);
  const { maxCreatesPerMinute, egressBytesPerDay, ...others } = usage.browsers;
  assert.deepEqual(others, { maxConcurrent: CONCURRENT_MAX, maxWaiting: 0, maxStoredBytes: 0 });
  // If starting ten browsers took a minute, the first creates are no longer in the window of one minute.
  const minCreates = performance.now() - beganMs < MINUTE_MS ? CONCURRENT_MAX : 0;
  assert.ok(
    maxCreatesPerMinute >= minCreates && maxCreatesPerMinute <= CONCURRENT_MAX,
    `${maxCreatesPerMinute} creates`,
  );
});

test('while ten sessions are running, five creates wait, five are refused, and the queue keeps its order when a caller disconnects', async () => {
  const pendingCreates: Array<Promise<CreateResult>> = [];
  for (const name of ['one', 'two']) {
    pendingCreates.push(create(name, 55));
    await waitUntilQueued(pendingCreates.length);
  }
  const thirdCreate = await startCreate(55);
  await waitUntilQueued(3);
  for (const name of ['four', 'five']) {
    pendingCreates.push(create(name, 55));
    await waitUntilQueued(pendingCreates.length + 1);
  }
  for (const { status, headers, body } of await Promise.all(
    Array.from({ length: WAITING_MAX }, () => create('late', 55)),
  )) {
    assert.deepEqual([status, body.code], [429, 'concurrency_limit']);
    assert.deepEqual(body.details, { limit: WAITING_MAX, used: WAITING_MAX, scope: 'line', retryAfterSeconds: 5 });
    assert.match(body.message, /queue of waiting creates is full \(limit 5, currently 5\)/);
    assert.deepEqual([headers['preference-applied'], headers['x-berth-waited']], ['wait=55', '0']);
  }
  const refusal = await create('hasty');
  assert.deepEqual([refusal.status, refusal.body.details?.scope], [429, 'application']);
  thirdCreate.hangUp();
  await waitUntilQueued(4);
  // The test might not observe a create that waits for only a second, but the response contains its position in the
  // queue.
  const { status, headers, body } = await create('six', 1);
  assert.deepEqual(
    [status, body.code, body.details?.position, body.details?.waiting],
    [429, 'concurrency_limit', 5, 5],
  );
  assert.ok(Number(headers['x-berth-waited']) >= 1000, String(headers['x-berth-waited']));
  assert.equal(Number(headers['x-berth-waited']), body.details?.waitedMs);
  const namesInOrder: unknown[] = [];
  for (const session of (await listRunning()).slice(0, pendingCreates.length)) {
    await server.release(session.id);
    namesInOrder.push(
      nameOf(
        await eventually(
          'the next session to start',
          async () => (await listRunning()).at(CONCURRENT_MAX - 1),
          Boolean,
        ),
      ),
    );
  }
  assert.deepEqual(namesInOrder, ['one', 'two', 'four', 'five']);
  for (const response of await Promise.all(pendingCreates)) {
    assert.equal(response.status, 201, response.text);
    assert.equal(response.headers['preference-applied'], 'wait=55');
    assert.ok(Number(response.headers['x-berth-waited']) > 0);
  }
  await Promise.all((await listRunning()).map(({ id }) => server.release(id)));
  await server.waitUntilSettled();
});

test('with a limit of ten sessions, only ten of a hundred concurrent creates and operation calls get a session', async () => {
  await setLimits(server, token, { maxConcurrent: CONCURRENT_MAX, maxCreatesPerMinute: 1000 });
  const { key } = await issueAgentKey(server, {
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'operations:invoke', 'invocations:read'],
  });
  const input = { url: `${pages.url}/slow`, timeoutMs: 120_000 };
  const call = () => invoke(server, key, 'browser.content', input, { headers: { prefer: 'respond-async' } });
  const firstCalls = await Promise.all(Array.from({ length: 4 }, call));
  const pendingPairs = Array.from({ length: 48 }, async (_, index) => Promise.all([create(`mixed ${index}`), call()]));
  const pairs = await Promise.all(pendingPairs);
  const calls = [...firstCalls, ...pairs.map(([, called]) => called)];
  const admittedCalls = calls.filter(({ status }) => status === 202);
  const { 201: created = 0, ...refusalCounts } = tally(pairs.map(([made]) => made));
  assert.ok(admittedCalls.length >= firstCalls.length);
  assert.equal(created + admittedCalls.length, CONCURRENT_MAX);
  assert.deepEqual(refusalCounts, { '429 concurrency_limit': 48 - created });
  for (const { status, body } of calls.filter(one => one.status !== 202))
    assert.deepEqual([status, body.code], [429, 'concurrency_limit']);
  assert.equal((await listRunning()).length, CONCURRENT_MAX);
  for (const { body } of admittedCalls)
    await server.api('POST', agentPath(server, `invocations/${body.id}/cancel`), { key });
  for (const [made] of pairs) if (made.status === 201) await server.release(made.body.id);
  await server.waitUntilSettled();
});

test('applications get free slots in turn, and no browser is started for a caller that has disconnected', async () => {
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  const keyResponse = await server.api<IssuedAgentKey>(
    'POST',
    `/v1/applications/${applicationResponse.body.id}/agent-keys`,
    {
      key: token,
      body: { name: 'other' },
    },
  );
  const otherKey = keyResponse.body.key;
  await setLimits(server, token, { maxConcurrent: 12, maxCreatesPerMinute: 1000 });
  const fillingResponses = await Promise.all(Array.from({ length: 12 }, (_, index) => create(`full ${index}`)));
  const refusal = await create('full 12', undefined, otherKey);
  assert.deepEqual([refusal.status, refusal.body.code], [503, 'capacity']);
  assert.deepEqual([refusal.headers['x-should-retry'], refusal.headers['retry-after']], ['true', '5']);
  const abandonedCreate = await startCreate(50);
  await waitUntilQueued(1);
  const pendingCreates: Array<Promise<CreateResult>> = [];
  for (const name of ['mine 1', 'mine 2']) {
    pendingCreates.push(create(name, 50));
    await waitUntilQueued(pendingCreates.length + 1);
  }
  const otherCreate = create('theirs 1', 50, otherKey);
  abandonedCreate.hangUp();
  await waitUntilQueued(2);
  const pendingResponses = Promise.all([...pendingCreates, otherCreate]);
  const path = `/v1/applications/${applicationResponse.body.id}/limits`;
  await eventually(
    'the creates of the other application to be queued',
    async () => (await server.api<Limits>('GET', path, { key: token })).body.usage.browsers.maxWaiting,
    count => count === 1,
  );
  assert.equal((await create('hasty', undefined, otherKey)).status, 503);
  for (const { body } of fillingResponses.slice(0, 3)) {
    await server.release(body.id);
    await eventually('the slot to be taken again', async () => (await countSessions()) === 12, Boolean, 30_000);
  }
  const createdSessions = (await pendingResponses).map(({ status, body }) => ({
    status,
    name: nameOf(body),
    createdAt: body.createdAt,
  }));
  assert.deepEqual(
    createdSessions.map(({ status }) => status),
    [201, 201, 201],
  );
  const namesInOrder = createdSessions
    .toSorted((one, two) => one.createdAt.localeCompare(two.createdAt))
    .map(({ name }) => name);
  assert.deepEqual(namesInOrder, ['mine 1', 'theirs 1', 'mine 2']);
  assert.match(await readMetrics(), /^berth_waiting_creates 0$/m);
  for (const queue of ['files', 'webhooks', 'mails', 'jobs'])
    assert.match(await readMetrics(), new RegExp(`^berth_queued\\{queue="${queue}"\\} \\d+$`, 'm'));
  assert.match(await readMetrics(), /^berth_refused_creates_total\{why="concurrent"\} \d+$/m);
});

test('a server that is shutting down refuses queued creates, and the next server counts running sessions toward the limit', async () => {
  const runningSessions = await listRunning();
  assert.ok(runningSessions.length > 0);
  await setLimits(server, token, { maxConcurrent: runningSessions.length });
  const queuedCreate = create('patient', 50);
  await waitUntilQueued(1);
  assert.equal(await server.kill('SIGTERM'), 0);
  const { status, headers, body } = await queuedCreate;
  assert.deepEqual([status, body.code, headers['x-should-retry']], [503, 'capacity', 'true']);
  assert.match(body.message, /stopping/);
  await server.start();
  assert.deepEqual((await create('one too many')).body.details?.used, runningSessions.length);
  await Promise.all(runningSessions.map(({ id }) => server.release(id)));
});

const readMetrics = async (): Promise<string> => (await server.fetchFromOperator('/metrics')).text;

/** The number of starting and running sessions in all applications. */
async function countSessions(): Promise<number> {
  const found = [...(await readMetrics()).matchAll(/^berth_sessions\{status="\w+"\} (\d+)$/gm)];
  return found.reduce((sum, [, count]) => sum + Number(count), 0);
}
