// Repeated writes. With an idempotency key, a write is executed once. Without a key, retries by official clients are
// recognized.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { test } from 'node:test';
import Browserbase from '@browserbasehq/sdk';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Session } from '../../contract/sessions.ts';
import type { HttpResult } from '../harness/http.ts';
import { createOwnerToken, setLimits } from '../harness/limits.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { type ApiOptions, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SESSIONS = '/v1/browsers/sessions';
const DAY_MS = 24 * 60 * 60_000;

const chromium = await createFaultyChromium();
const server = await startServer({
  clock: 'test',
  env: { BERTH_CHROMIUM: chromium.path, BERTH_WARM: '0', BERTH_SLOTS: '6' },
});
const token = await createOwnerToken(server);

type ApiResult = HttpResult<ErrorBody & Session>;

const post = (path: string, key: string, body: unknown, more: ApiOptions = {}): Promise<ApiResult> =>
  server.api('POST', path, { body, ...more, headers: { 'idempotency-key': key, ...more.headers } });

const create = (key: string, body: object = {}): Promise<ApiResult> =>
  post(SESSIONS, key, { keepAlive: true, ...body });

const isReplay = ({ headers }: ApiResult): boolean => headers['idempotency-replayed'] === 'true';

const listSessions = async (status = 'PENDING,RUNNING'): Promise<Session[]> =>
  (await server.api<Session[]>('GET', `${SESSIONS}?status=${status}`)).body;

const releaseAll = async (): Promise<void> => {
  await Promise.all((await listSessions()).map(({ id }) => server.release(id)));
};

/** Sends a create. `hangUp` closes its connection. */
function startCreate(headers: Record<string, string>, body = '{"keepAlive":true}'): { hangUp: () => void } {
  const outgoingRequest = request(`${server.url}${SESSIONS}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...headers },
    agent: false,
  });
  outgoingRequest.on('error', () => {}); // Closing the connection causes an error.
  outgoingRequest.end(body);
  return { hangUp: () => void outgoingRequest.destroy() };
}

// ---- with a key ----------------------------------------------------------------------------------------------------

test('fifty concurrent creates with the same idempotency key return one session in identical responses', async () => {
  const key = randomUUID();
  const responses = await Promise.all(Array.from({ length: 50 }, () => create(key, { viewprot: 1 })));
  assert.equal(new Set(responses.map(({ text }) => text)).size, 1, 'all bodies are the same');
  assert.deepEqual([...new Set(responses.map(({ status }) => status))], [201]);
  assert.equal(responses.filter(isReplay).length, 49);
  const [{ body, headers } = assert.fail()] = responses;
  assert.deepEqual(
    (await listSessions()).map(({ id }) => id),
    [body.id],
  );
  assert.equal(headers.location, `${SESSIONS}/${body.id}`);
  assert.ok(body.connectUrl?.includes(body.id));
  assert.equal(body.warnings?.[0]?.path, 'viewprot');
  await server.release(body.id);
});

test('a replay returns the current state of the session, and another key creates another session', async () => {
  const key = randomUUID();
  const firstResponse = await create(key);
  const secondResponse = await create(randomUUID());
  assert.notEqual(firstResponse.body.id, secondResponse.body.id);
  await releaseAll();
  const replay = await create(key);
  assert.deepEqual([replay.status, replay.body.id, replay.body.status], [201, firstResponse.body.id, 'COMPLETED']);
  assert.ok(isReplay(replay) && !isReplay(firstResponse) && !isReplay(secondResponse));
  assert.equal(replay.body.connectUrl, undefined);
});

test('reusing an idempotency key with another body, path or operation is a conflict, but another order of fields is not', async () => {
  const key = randomUUID();
  const firstResponse = await post(SESSIONS, key, { keepAlive: true, timeout: 900 });
  const sameBodyResponse = await post(SESSIONS, key, { timeout: 900, keepAlive: true });
  assert.deepEqual([sameBodyResponse.status, sameBodyResponse.body.id], [201, firstResponse.body.id]);
  const conflicts = [
    await post(SESSIONS, key, { keepAlive: true, timeout: 901 }),
    await post('/v1/sessions', key, { keepAlive: true, timeout: 900 }),
    await post(`${SESSIONS}/${firstResponse.body.id}`, key, { status: 'REQUEST_RELEASE' }),
  ];
  for (const { status, body, headers } of conflicts) {
    assert.deepEqual([status, body.code], [409, 'idempotency_conflict']);
    assert.equal(headers['x-should-retry'], 'false');
  }
  assert.equal((await server.read(firstResponse.body.id)).status, 'RUNNING');
  await releaseAll();
});

test('an idempotency key is kept for a day', async () => {
  const key = randomUUID();
  const firstResponse = await create(key, { timeout: 60 });
  await server.advance(DAY_MS - 60_000);
  await server.waitUntilEnded(firstResponse.body.id);
  assert.equal((await create(key, { timeout: 60 })).body.id, firstResponse.body.id);
  await server.advance(120_000);
  const nextDayResponse = await create(key, { timeout: 60 });
  assert.ok(!isReplay(nextDayResponse));
  assert.notEqual(nextDayResponse.body.id, firstResponse.body.id);
  await releaseAll();
});

test('a malformed idempotency key is refused', async () => {
  for (const key of ['', 'x'.repeat(256), 'tab\tin it']) {
    const { status, body } = await post(SESSIONS, key, {});
    assert.deepEqual([status, body.code], [400, 'invalid_request'], JSON.stringify(key));
    assert.match(body.message, /Idempotency-Key/);
  }
  assert.deepEqual(await listSessions(), []);
});

test('a refused request does not use up its idempotency key', async () => {
  const key = randomUUID();
  assert.equal((await create(key, { timeout: 1 })).status, 400);
  assert.equal((await create(key, { proxies: true })).status, 422);
  await setLimits(server, token, { maxConcurrent: 0 });
  assert.deepEqual((await create(key)).body.code, 'concurrency_limit');
  await setLimits(server, token, { maxCreatesPerMinute: 0 });
  assert.deepEqual((await create(key)).body.code, 'rate_limited');
  await setLimits(server, token, {});
  const createResponse = await create(key);
  assert.deepEqual([createResponse.status, isReplay(createResponse)], [201, false]);
  await releaseAll();
});

test('the error of a failed start is replayed for the same key, and a create with another key can succeed', async () => {
  const key = randomUUID();
  chromium.setBehavior('fails');
  const firstResponse = await create(key);
  chromium.setBehavior('well');
  assert.ok(firstResponse.status >= 500, firstResponse.text);
  const replay = await create(key);
  assert.ok(isReplay(replay));
  assert.deepEqual(
    [replay.status, replay.body.code, replay.body.message],
    [firstResponse.status, firstResponse.body.code, firstResponse.body.message],
  );
  assert.equal((await create(randomUUID())).status, 201);
  await releaseAll();
});

test('a replay does not return a secret that is shown only once', async () => {
  const key = randomUUID();
  const path = `/v1/applications/${server.applicationId}/agent-keys`;
  const issue = () =>
    server.api<IssuedAgentKey>('POST', path, {
      key: token,
      body: { name: 'nightly' },
      headers: { 'idempotency-key': key },
    });
  const [first, replay] = [await issue(), await issue()];
  assert.deepEqual([first.status, replay.status], [201, 201]);
  const { key: shown, ...rest } = first.body;
  assert.match(shown, /^bak_/);
  assert.deepEqual(replay.body, rest);
  assert.equal(replay.headers.etag, first.headers.etag);
  assert.equal(replay.headers['idempotency-replayed'], 'true');
  const conflictResponse = await server.api('POST', `${path}/${first.body.id}/rotate`, {
    key: token,
    body: {},
    headers: { 'idempotency-key': key },
  });
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'idempotency_conflict']);
});

test('a repeated release with the same key returns the same response as the first release', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const key = randomUUID();
  const release = () => post(`${SESSIONS}/${id}`, key, { status: 'REQUEST_RELEASE' });
  const [first, replay] = [await release(), await release()];
  assert.deepEqual([first.status, replay.status, replay.text], [200, 200, first.text]);
  assert.ok(isReplay(replay));
  const unkeyedResponse = await server.api('POST', `${SESSIONS}/${id}`, { body: { status: 'REQUEST_RELEASE' } });
  assert.equal(unkeyedResponse.status, 409);
});

test('a caller that disconnects while its session is starting gets the same session by repeating the request', async () => {
  chromium.setBehavior('slow');
  const key = randomUUID();
  const firstCreate = startCreate({ 'idempotency-key': key });
  const [pendingSession] = await eventually('the session to be placed', listSessions, found => found.length === 1);
  firstCreate.hangUp();
  const replay = await create(key);
  chromium.setBehavior('well');
  assert.deepEqual([replay.status, replay.body.id, replay.body.status], [201, pendingSession?.id, 'RUNNING']);
  assert.equal((await listSessions()).length, 1);
  await releaseAll();
});

test('an idempotency key is still recognized after the server crashes during the request', async () => {
  chromium.setBehavior('hangs');
  const key = randomUUID();
  startCreate({ 'idempotency-key': key });
  const [pendingSession] = await eventually('the session to be placed', listSessions, found => found.length === 1);
  await eventually('the browser to be starting', () => chromium.isStarting());
  chromium.setBehavior('well');
  await server.restart();
  const replay = await create(key);
  assert.deepEqual([replay.status, replay.body.id], [201, pendingSession?.id]);
  assert.deepEqual([replay.body.status, replay.body.endReason], ['ERROR', 'service_restart']);
  assert.ok(isReplay(replay));
  assert.equal((await create(randomUUID())).status, 201);
  await releaseAll();
});

// ---- without a key -------------------------------------------------------------------------------------------------

const resend = (count: number, body: object = { keepAlive: true }, key = server.key): Promise<ApiResult> =>
  server.api('POST', SESSIONS, { key, body, headers: { 'x-stainless-retry-count': String(count) } });

test('the official client creates only one session, even if its request times out while the browser starts', async () => {
  chromium.setBehavior('slow');
  // The default of three attempts may not be enough on a busy machine.
  const sdk = new Browserbase({ apiKey: server.key, baseURL: server.url, maxRetries: 9 });
  const countCreates = (): number => server.log().filter(line => line.includes('createSession.begin')).length;
  const countBefore = countCreates();
  const session = await sdk.sessions.create({ timeout: 3600 });
  chromium.setBehavior('well');
  await eventually('the create to be sent again', () => countCreates() - countBefore >= 2);
  const all = (await server.api<Session[]>('GET', SESSIONS)).body.filter(({ id }) => id >= session.id);
  assert.deepEqual(
    all.map(({ id }) => id),
    [session.id],
  );
  assert.equal(session.status, 'RUNNING');
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 3_600_000);
  await releaseAll();
});

test('a retry without an idempotency key gets the session whose create response was lost, but only once and with the same agent key and body', async () => {
  chromium.setBehavior('slow');
  const firstCreate = startCreate({ 'x-stainless-retry-count': '0' });
  const [lostSession] = await eventually('the session to be placed', listSessions, found => found.length === 1);
  firstCreate.hangUp();
  chromium.setBehavior('well');
  const made = await server.operate(
    'keys',
    'create',
    '--name',
    'other',
    '--json',
    '--application',
    server.applicationId,
  );
  const otherKey: { key: string } = JSON.parse(made.stdout);
  const otherResponses = [await resend(1, { keepAlive: true, timeout: 901 }), await resend(1, undefined, otherKey.key)];
  for (const { body } of otherResponses) assert.notEqual(body.id, lostSession?.id);
  const replay = await resend(1);
  assert.deepEqual([replay.status, replay.body.id, replay.body.status], [201, lostSession?.id, 'RUNNING']);
  assert.ok(isReplay(replay) && replay.body.connectUrl);
  const nextResponse = await resend(2);
  assert.ok(
    nextResponse.body.id !== lostSession?.id && !isReplay(nextResponse),
    'the response has arrived, so this is a new create',
  );
  await releaseAll();
});

test('a retry does not get the session of a request that is still in progress or was answered', async () => {
  chromium.setBehavior('slow');
  const pendingCreate = resend(0);
  await eventually('the session to be placed', listSessions, found => found.length === 1);
  chromium.setBehavior('well');
  const [otherResponse, firstResponse] = await Promise.all([resend(1), pendingCreate]);
  assert.notEqual(otherResponse.body.id, firstResponse.body.id);
  assert.notEqual((await resend(1)).body.id, firstResponse.body.id);
  await releaseAll();
});

test('a retry does not get a session whose create response was lost two minutes ago', async () => {
  const firstCreate = startCreate({ 'x-stainless-retry-count': '0' });
  const [lostSession] = await eventually('the session to be placed', listSessions, found => found.length === 1);
  firstCreate.hangUp();
  await eventually(
    'the session to be running',
    () => server.read(lostSession?.id ?? ''),
    ({ status }) => status === 'RUNNING',
  );
  await server.advance(121_000);
  assert.notEqual((await resend(1)).body.id, lostSession?.id);
  await releaseAll();
  await server.waitUntilSettled();
});

test('a retry after a crash of the server gets a new, running session', async () => {
  chromium.setBehavior('hangs');
  startCreate({ 'x-stainless-retry-count': '0' });
  const [lostSession] = await eventually('the session to be placed', listSessions, found => found.length === 1);
  await eventually('the browser of the session to hang', () => chromium.isStarting());
  chromium.setBehavior('well');
  await server.restart();
  const retryResponse = await resend(1);
  assert.deepEqual([retryResponse.status, retryResponse.body.status], [201, 'RUNNING']);
  assert.notEqual(retryResponse.body.id, lostSession?.id);
  assert.deepEqual(
    (await listSessions()).map(({ id }) => id),
    [retryResponse.body.id],
  );
  assert.equal((await server.read(lostSession?.id ?? '')).endReason, 'service_restart');
  await releaseAll();
});
