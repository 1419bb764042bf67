// Two servers on one database: a credential that is revoked on one server is refused by the other, although the other
// has cached it. The cache keeps credentials for 30 seconds, so an earlier refusal shows that the server was notified.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import { Scope } from '../../server/kit/scope.ts';
import { DeviceFixture } from '../harness/device.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startS3 } from '../harness/s3.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { startForeignServer } from './store-fixtures.ts';

const CACHE_MAX_AGE_MS = 30_000;

const scope = new Scope();
after(() => scope.close());
const database = await startForeignServer(scope);
const store = await startS3();
after(() => store.close());
const env = {
  ...store.env,
  BERTH_SLOTS: '0',
  DATABASE_URL: database.url.reveal(),
  BERTH_SECRET: randomBytes(32).toString('hex'),
  BERTH_MASTER_KEY: randomBytes(32).toString('hex'),
};
const one = await startServer({ env });
const two = await startServer({ env, key: one.key });
const devices = await DeviceFixture.open(one);
const token = await createOwnerToken(one);

const SESSIONS = '/v1/browsers/sessions';

/**
 * Both servers accept the credential, and then it is revoked on the first one. Asserts that the second server refuses
 * the credential before its cache entry expires.
 */
async function assertForgotten(
  statusAt: (server: typeof one) => Promise<number>,
  endAtOne: () => Promise<{ readonly status: number; readonly text: string }>,
): Promise<void> {
  assert.equal(await statusAt(one), 200);
  const cachedAtMs = performance.now();
  assert.equal(await statusAt(two), 200);
  assert.equal(await statusAt(two), 200);
  const { status, text } = await endAtOne();
  assert.ok(status === 200 || status === 204, `${status} ${text}`);
  assert.equal(await statusAt(one), 401);
  await eventually(
    'the other server to refuse the credential',
    () => statusAt(two),
    code => code === 401,
  );
  const ms = performance.now() - cachedAtMs;
  assert.ok(ms < CACHE_MAX_AGE_MS, `after ${Math.round(ms)} ms the cache entry would have expired anyway`);
}

test('an agent key that is revoked on one server is refused by both servers', async () => {
  const keys = `/v1/applications/${one.applicationId}/agent-keys`;
  const issueResponse = await one.api<IssuedAgentKey>('POST', keys, { key: token, body: { name: 'shared' } });
  assert.equal(issueResponse.status, 201, issueResponse.text);
  const { id, key } = issueResponse.body;
  await assertForgotten(
    async server => (await server.api('GET', SESSIONS, { key })).status,
    () => one.api('DELETE', `${keys}/${id}`, { key: token }),
  );
});

test('a developer token that is revoked on one server is refused by both servers', async () => {
  const startedDevice = await devices.start();
  await devices.approve(startedDevice);
  const { access_token: key } = await devices.collectToken(startedDevice);
  await assertForgotten(
    async server => (await server.api('GET', '/v1/account/tokens/current', { key })).status,
    () => one.api('POST', '/v1/account/tokens/revoke', { key: null, body: { token: key } }),
  );
});

test('a human session is refused by both servers after the person has signed out on one server', async () => {
  const person = await devices.signInOwner();
  const { cookie } = person;
  assert.ok(cookie);
  await assertForgotten(
    async server =>
      (await server.api('GET', '/v1/account', { key: null, headers: { cookie, origin: server.url } })).status,
    () => person.post('/v1/account/sign-out'),
  );
});
