// An application's limits as its owner sees them, and the limits on creates per minute and on the time limits of
// sessions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import { BROWSER_LIMITS_DEFAULT, type Limits } from '../../contract/limits.ts';
import type { Session } from '../../contract/sessions.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, readLimits, setLimits } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SECOND_MS = 1000;

const server = await startServer({
  clock: 'test',
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '4', BERTH_WARM: '1' },
});
const token = await createOwnerToken(server);
const path = `/v1/applications/${server.applicationId}/limits`;

const replaceLimits = (body: unknown, headers: Record<string, string> = {}) =>
  server.api<ErrorBody & Limits>('PUT', path, { key: token, body, headers });

/** Returns an `If-Match` header with the current revision. */
const readIfMatch = async (): Promise<{ 'if-match': string }> => ({
  'if-match': `"${(await readLimits(server, token)).revision}"`,
});

test('a new application has the default limits, capped by the ceiling of the installation', async () => {
  const { status, headers, body } = await server.api<Limits>('GET', path, { key: token });
  assert.equal(status, 200);
  assert.equal(headers.etag, '"1"');
  assert.deepEqual(body, {
    configured: { browsers: BROWSER_LIMITS_DEFAULT },
    effective: { browsers: { ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 4 } },
    usage: {
      browsers: { maxConcurrent: 0, maxCreatesPerMinute: 0, maxWaiting: 0, maxStoredBytes: 0, egressBytesPerDay: 0 },
    },
    ceiling: { browsers: { maxConcurrent: 4, maxTimeout: 21_600, maxWaiting: 1000 } },
    revision: 1,
  });
});

test('a PUT replaces all limits of an application, and requires the current revision', async () => {
  const firstResponse = await replaceLimits({ browsers: { maxConcurrent: 3, maxWaiting: 7 } }, await readIfMatch());
  assert.equal(firstResponse.status, 200);
  assert.equal(firstResponse.headers.etag, `"${firstResponse.body.revision}"`);
  assert.deepEqual(firstResponse.body.configured.browsers, {
    ...BROWSER_LIMITS_DEFAULT,
    maxConcurrent: 3,
    maxWaiting: 7,
  });
  const secondResponse = await replaceLimits(
    { browsers: { maxWaiting: 8 } },
    { 'if-match': `"${firstResponse.body.revision}"` },
  );
  assert.deepEqual(secondResponse.body.configured.browsers, { ...BROWSER_LIMITS_DEFAULT, maxWaiting: 8 });
  assert.equal(secondResponse.body.revision, firstResponse.body.revision + 1);
  const staleResponse = await replaceLimits({}, { 'if-match': `"${firstResponse.body.revision}"` });
  assert.deepEqual([staleResponse.status, staleResponse.body.code], [412, 'precondition_failed']);
  const unconditionalResponse = await replaceLimits({});
  assert.deepEqual([unconditionalResponse.status, unconditionalResponse.body.code], [428, 'precondition_required']);
  const defaultsResponse = await replaceLimits({}, await readIfMatch());
  assert.deepEqual(defaultsResponse.body.configured.browsers, BROWSER_LIMITS_DEFAULT);
});

test('limits with null, an unknown field or a number out of range are refused, and the error names the field', async () => {
  const { revision } = await readLimits(server, token);
  const cases: ReadonlyArray<readonly [unknown, string, string]> = [
    [{ browsers: { maxConcurrent: null } }, 'invalid_request', 'browsers.maxConcurrent'],
    [{ browsers: null }, 'invalid_request', 'browsers'],
    [{ browsers: { maxConcurrent: -1 } }, 'invalid_request', 'browsers.maxConcurrent'],
    [{ browsers: { maxConcurrent: '3' } }, 'invalid_request', 'browsers.maxConcurrent'],
    [{ browsers: { maxTimeout: 30 } }, 'invalid_request', 'browsers.maxTimeout'],
    [{ browsers: { maxWaiting: 1001 } }, 'invalid_request', 'browsers.maxWaiting'],
    [{ browsers: { maxSessions: 3 } }, 'unknown_field', 'browsers.maxSessions'],
    [{ operations: {} }, 'unknown_field', 'operations'],
  ];
  for (const [body, code, field] of cases) {
    const response = await replaceLimits(body, await readIfMatch());
    assert.deepEqual([response.status, response.body.code], [400, code], JSON.stringify(body));
    assert.ok(response.body.message.includes(field), response.body.message);
  }
  assert.equal((await readLimits(server, token)).revision, revision);
});

test('a limit cannot be raised above the ceiling of the operator, but an unchanged limit above the ceiling is accepted', async () => {
  const refusal = await replaceLimits({ browsers: { maxConcurrent: 5 } }, await readIfMatch());
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request']);
  assert.match(refusal.body.message, /browsers\.maxConcurrent is 5; the operator of this service allows at most 4/);
  // The default limit is above the ceiling. The request does not raise the limit, so it is accepted.
  const { maxConcurrent } = BROWSER_LIMITS_DEFAULT;
  const acceptedResponse = await replaceLimits({ browsers: { maxConcurrent } }, await readIfMatch());
  assert.deepEqual([acceptedResponse.status, acceptedResponse.body.effective?.browsers.maxConcurrent], [200, 4]);
  const timeoutRefusal = await replaceLimits(
    { browsers: { defaultTimeout: 700, maxTimeout: 600 } },
    await readIfMatch(),
  );
  assert.match(timeoutRefusal.body.message, /browsers\.defaultTimeout is 700, which is above maxTimeout \(600\)/);
});

test('the limits can be read and changed only with the token of a member with the required scope, and not with an agent key', async () => {
  for (const method of ['GET', 'PUT']) {
    const keyResponse = await server.api(method, path, { body: method === 'PUT' ? {} : undefined });
    assert.deepEqual([keyResponse.status, keyResponse.body.code], [401, 'invalid_credentials']);
    const anonymousResponse = await server.api(method, path, { key: null });
    assert.deepEqual([anonymousResponse.status, anonymousResponse.body.code], [401, 'missing_credentials']);
    const foreignPath = path.replace(server.applicationId, '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11');
    const foreignResponse = await server.api(method, foreignPath, {
      key: token,
      body: method === 'PUT' ? {} : undefined,
    });
    assert.deepEqual([foreignResponse.status, foreignResponse.body.code], [404, 'not_found']);
  }
  const made = await server.operate('tokens', 'create', '--name', 'reader', '--scope', 'applications:read', '--json');
  const reader: { token: string } = JSON.parse(made.stdout);
  assert.equal((await server.api('GET', path, { key: reader.token })).status, 200);
  const refusal = await server.api('PUT', path, { key: reader.token, body: {}, headers: await readIfMatch() });
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
});

test('a session gets the default time limit of the application, and cannot exceed the maximum of the application', async () => {
  await setLimits(server, token, { defaultTimeout: 600, maxTimeout: 1200 });
  const session = await server.createSession();
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 600 * SECOND_MS);
  const update = (timeout: number) =>
    server.api<ErrorBody & Session>('POST', `/v1/browsers/sessions/${session.id}`, { body: { timeout } });
  const updateResponse = await update(1200);
  assert.equal(Date.parse(updateResponse.body.expiresAt) - Date.parse(session.createdAt), 1200 * SECOND_MS);
  const refusals = [await update(1201), await server.api('POST', '/v1/browsers/sessions', { body: { timeout: 1201 } })];
  for (const { status, body } of refusals) {
    assert.deepEqual([status, body.code], [400, 'invalid_request']);
    assert.match(body.message, /timeout is 1201; the application's limit maxTimeout is 1200 seconds/);
  }
  await server.release(session.id);
  const [project] = (await server.api<Array<{ defaultTimeout: number; concurrency: number }>>('GET', '/v1/projects'))
    .body;
  assert.deepEqual([project?.defaultTimeout, project?.concurrency], [600, 4]);
});

test('the number of creates in any period of 60 seconds is limited, and the refusal states when to retry', async () => {
  await server.advance(61 * SECOND_MS);
  await setLimits(server, token, { maxCreatesPerMinute: 2 });
  const create = () => server.api<ErrorBody & Session>('POST', '/v1/browsers/sessions');
  const firstResponse = await create();
  assert.equal(firstResponse.status, 201, firstResponse.text);
  assert.deepEqual(
    ['limit', 'remaining'].map(name => firstResponse.headers[`x-ratelimit-${name}`]),
    ['2', '1'],
  );
  await server.release(firstResponse.body.id);
  await server.advance(20 * SECOND_MS);
  const secondResponse = await create();
  assert.deepEqual([secondResponse.status, secondResponse.headers['x-ratelimit-remaining']], [201, '0']);
  await server.release(secondResponse.body.id);
  const { status, headers, body } = await create();
  assert.deepEqual([status, body.code], [429, 'rate_limited']);
  assert.deepEqual([headers['x-should-retry'], headers['x-ratelimit-limit']], ['true', '2']);
  assert.equal(headers['x-ratelimit-remaining'], '0');
  const seconds = Number(headers['retry-after']);
  assert.ok(seconds > 0 && seconds <= 40, `retry-after ${seconds}`);
  assert.equal(headers['x-ratelimit-reset'], String(seconds));
  assert.match(body.message, /limit of creates per minute \(limit 2, currently 2\)/);
  assert.deepEqual(body.details, { limit: 2, used: 2, scope: 'application', retryAfterSeconds: seconds });
  await server.advance(seconds * SECOND_MS);
  const thirdResponse = await create();
  assert.equal(thirdResponse.status, 201, thirdResponse.text);
  await server.release(thirdResponse.body.id);
});

test('a limit below the current use ends no session but refuses creates, and a higher limit admits queued creates', async () => {
  await server.advance(61 * SECOND_MS);
  await setLimits(server, token, {});
  const session = await server.createSession();
  await setLimits(server, token, { maxConcurrent: 0 });
  const refusal = await server.api('POST', '/v1/browsers/sessions');
  assert.deepEqual([refusal.status, refusal.body.code], [429, 'concurrency_limit']);
  assert.match(refusal.body.message, /max concurrent sessions limit \(limit 0, currently 1\)/);
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  const queuedCreate = server.api<Session>('POST', '/v1/browsers/sessions', { headers: { prefer: 'wait=50' } });
  await eventually(
    'a create to be queued',
    () => readLimits(server, token),
    ({ usage }) => usage.browsers.maxWaiting === 1,
  );
  await setLimits(server, token, { maxConcurrent: 2 });
  const createResponse = await queuedCreate;
  assert.equal(createResponse.status, 201, createResponse.text);
  await Promise.all([session.id, createResponse.body.id].map(id => server.release(id)));
});
