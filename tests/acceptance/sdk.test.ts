// The official SDK, unmodified, on both base addresses: the values that it reads, and the number of requests that it
// sends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Browserbase, { APIError } from '@browserbasehq/sdk';
import type { ErrorBody } from '../../contract/common.ts';
import { openCountingProxy, type RecordedRequest } from '../harness/counting-proxy.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '2' } });
const proxy = await openCountingProxy(server.url);

const createClient = (path: string): Browserbase =>
  new Browserbase({ apiKey: server.key, baseURL: `${proxy.url}${path}` });
const sdk = createClient('');

const createsOf = (requests: readonly RecordedRequest[]): RecordedRequest[] =>
  requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/sessions'));

/** Returns the error of a call, and how often the call was sent. */
async function waitForRefusal(call: PromiseLike<unknown>): Promise<{ error: APIError; times: number }> {
  proxy.takeRequests();
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof APIError, String(error));
    return { error, times: proxy.takeRequests().length };
  }
  throw new Error('the call was not refused');
}

for (const path of ['', '/', '/v1/browsers']) {
  const client = createClient(path);

  test(`the official client creates, reads, lists and releases a session with the base address ${path || 'of the server'}`, async () => {
    const run = crypto.randomUUID();
    const session = await client.sessions.create({ userMetadata: { run } });
    assert.equal(session.status, 'RUNNING');
    assert.equal(session.projectId, server.applicationId);
    assert.match(session.connectUrl, /^ws:/);
    assert.ok(session.signingKey);
    assert.equal(session.region, 'us-west-2', 'a region that the client knows');
    const read = await client.sessions.retrieve(session.id);
    assert.equal(read.connectUrl, session.connectUrl);
    const foundSessions = await client.sessions.list({ q: `user_metadata['run']:'${run}'` });
    assert.deepEqual(
      foundSessions.map(({ id }) => id),
      [session.id],
    );
    assert.ok((await client.sessions.list({ status: 'RUNNING' })).some(({ id }) => id === session.id));
    const releasedSession = await client.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
    assert.equal(releasedSession.status, 'COMPLETED');
    assert.ok(releasedSession.endedAt);
    assert.deepEqual(await client.sessions.recording.retrieve(session.id), [], 'what it replaced is elsewhere');
    const secondRelease = await client.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
    assert.equal(secondRelease.status, 'COMPLETED', 'a repeated release succeeds');
  });
}

test('create({}) and create() of the official client create a session with defaults', async () => {
  for (const params of [{}, undefined]) {
    const session = await sdk.sessions.create(params);
    assert.equal(session.keepAlive, false);
    await sdk.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
  }
});

test('the official client can create a session with many fields, and gets the requested time limit, keepAlive, region and metadata', async () => {
  const session = await sdk.sessions.create({
    projectId: server.applicationId,
    api_timeout: 120,
    keepAlive: true,
    region: 'eu-central-1',
    proxies: false,
    userMetadata: { a: { b: 'c' } },
    browserSettings: {
      viewport: { width: 1288, height: 711 },
      blockAds: false,
      logSession: true,
      recordSession: true,
      solveCaptchas: true,
      ignoreCertificateErrors: false,
      verified: true,
      os: 'linux',
    },
  });
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 120_000);
  assert.equal(session.keepAlive, true);
  assert.equal(session.region, 'eu-central-1');
  assert.deepEqual(session.userMetadata, { a: { b: 'c' } });
  await sdk.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
});

test('the official client can set a time limit if it sets another field as well', async () => {
  const params = { timeout: 90, keepAlive: true };
  const session = await sdk.sessions.create(params);
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 90_000);
  await sdk.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
});

test('the official client treats a time limit without other fields as a request option, so the session gets the default of an hour', async () => {
  proxy.takeRequests();
  // The SDK uses `timeout` as its own time limit in milliseconds. With a smaller number, a cold start on a busy machine
  // would time out.
  const session = await sdk.sessions.create({ timeout: 21_600 });
  assert.deepEqual([...new Set(createsOf(proxy.takeRequests()).map(({ body }) => body))], ['{}']);
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 3_600_000);
  await releaseAll();
});

async function releaseAll(): Promise<void> {
  for (const { id } of await sdk.sessions.list({ status: 'RUNNING' }))
    await sdk.sessions.update(id, { status: 'REQUEST_RELEASE' });
}

test('the official client sends a refused write only once, and its error contains the message of the refusal', async () => {
  const { id } = await sdk.sessions.create({});
  await sdk.sessions.update(id, { status: 'REQUEST_RELEASE' });
  const updateRefusal = await waitForRefusal(sdk.post(`/v1/sessions/${id}`, { body: { userMetadata: {} } }));
  assert.equal(updateRefusal.error.status, 409);
  assert.match(updateRefusal.error.message, /not running/);
  assert.equal(updateRefusal.times, 1);
  const bad = await waitForRefusal(sdk.sessions.create({ userMetadata: { list: [] } }));
  assert.equal(bad.error.status, 400);
  assert.match(bad.error.message, /userMetadata\.list/);
  assert.equal(bad.times, 1);
  const proxyRefusal = await waitForRefusal(sdk.sessions.create({ proxies: true }));
  assert.equal(proxyRefusal.error.status, 422);
  assert.equal(proxyRefusal.times, 1);
});

test('when no slot is free, the official client retries the create, and succeeds once a slot is free', async () => {
  const firstSession = await sdk.sessions.create({ keepAlive: true });
  const secondSession = await sdk.sessions.create({ keepAlive: true });
  proxy.takeRequests();
  const seenRequests: RecordedRequest[] = [];
  // The SDK retries after the five seconds that the refusal specifies. The number of retries depends on the machine and
  // is not tested here.
  const pendingSession = sdk.sessions.create({}, { maxRetries: 8 });
  await eventually('the first refused create', () => seenRequests.push(...proxy.takeRequests()) > 0);
  assert.deepEqual(
    createsOf(seenRequests).map(({ status }) => status),
    [503],
  );
  await server.release(firstSession.id);
  assert.equal((await pendingSession).status, 'RUNNING');
  seenRequests.push(...createsOf(proxy.takeRequests()));
  // On a busy machine the slot may be free only after the retry, and then the SDK retries again.
  const told = createsOf(seenRequests).map(({ status }) => status);
  assert.deepEqual([told.at(-1), [...new Set(told.slice(0, -1))]], [201, [503]]);
  assert.deepEqual(
    createsOf(seenRequests).map(({ headers }) => headers['x-stainless-retry-count']),
    told.map((_, index) => String(index)),
  );
  await server.release(secondSession.id);
  await releaseAll();
});

test('for a wrong key, the official client shows the error message of the server', async () => {
  const client = new Browserbase({ apiKey: 'bak_wrong', baseURL: proxy.url });
  const { error, times } = await waitForRefusal(client.sessions.list());
  assert.equal(error.status, 401);
  assert.match(error.message, /not valid/);
  assert.equal(times, 1);
});

test('the official client can read an application, including its usage, as a project', async () => {
  const [project] = await sdk.projects.list();
  assert.equal(project?.id, server.applicationId);
  assert.equal(project.defaultTimeout, 3600);
  assert.equal(project.concurrency, 2);
  assert.deepEqual(await sdk.projects.retrieve(project.id), project);
  const usage = await sdk.projects.usage(project.id);
  assert.ok(usage.browserMinutes > 0);
  assert.equal(usage.proxyBytes, 0);
});

test("Stagehand's start call creates or reuses a session, its end call ends the session, and the model key is not logged", async () => {
  const startResponse = await server.api<{ success: boolean; data: { sessionId: string; available: boolean } }>(
    'POST',
    '/v1/sessions/start',
    {
      body: {
        modelName: 'x',
        browserbaseSessionCreateParams: { keepAlive: true, userMetadata: { from: 'stagehand' } },
      },
      headers: { 'x-model-api-key': 'sk-very-secret' },
    },
  );
  assert.equal(startResponse.status, 200);
  const { sessionId, available } = startResponse.body.data;
  assert.equal(available, false);
  assert.deepEqual((await server.read(sessionId)).userMetadata, { from: 'stagehand' });
  const secondResponse = await server.api<typeof startResponse.body>('POST', '/v1/sessions/start', {
    body: { browserbaseSessionID: sessionId },
  });
  assert.equal(secondResponse.body.data.sessionId, sessionId);
  const endResponse = await server.api('POST', `/v1/sessions/${sessionId}/end`);
  assert.deepEqual(endResponse.body, { success: true });
  assert.equal((await server.read(sessionId)).status, 'COMPLETED');
  assert.ok(!server.log().some(line => line.includes('sk-very-secret')));
});

test('compatibility paths return 404 if the compatibility mount is disabled', async () => {
  const nativeServer = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_COMPAT: 'off' } });
  for (const path of ['/v1/sessions', '/v1/browsers/v1/sessions', '/v1/projects']) {
    const { status, body } = await nativeServer.api<ErrorBody>('GET', path);
    assert.deepEqual([status, body.code], [404, 'route_not_found'], path);
  }
  assert.equal((await nativeServer.api('GET', '/v1/browsers/sessions')).status, 200);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
