// Credentials for other services are written, used by operations, rotated, rolled back and deleted. Their values are
// never returned.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { StoredCredential, StoredCredentialPage } from '../../contract/stored-credentials.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows } from '../harness/other-person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const HOUR_MS = 3_600_000;
const upstream = await openUpstream();
const server = await startServer({ clock: 'test', env: { BERTH_WARM: '0', ...upstream.settings } });
await liftLimits(server);
const owner = await Owner.open(server);
const { key } = await issueAgentKey(server, { grants: [{ operationId: 'orders.cancel' }] });
const hosts = [upstream.host];
const apiKeyCredential = (text: string, more: object = {}) => ({
  type: 'api_key',
  value: { key: text },
  hosts,
  ...more,
});
const boundOperation = (auth: object, more: object = {}) =>
  cancelOrderOperation(upstream, { binding: { auth, ...more } });
let callCount = 0;
const call = (orderId: string) => {
  callCount += 1;
  return invoke(server, key, 'orders.cancel', { orderId }, { headers: { 'idempotency-key': `call ${callCount}` } });
};
const receivedHeadersOf = (orderId: string) => upstream.receivedRequests(`/orders/${orderId}/`).at(-1)?.headers;

test('a credential can be written, and is returned without its value', async () => {
  const writeResponse = await owner.writeCredential(
    'shop-api',
    apiKeyCredential('first-key-of-the-shop', { label: 'Shop' }),
  );
  assert.equal(writeResponse.status, 201, writeResponse.text);
  assert.deepEqual(
    [writeResponse.body.version, writeResponse.body.revision, writeResponse.headers.etag],
    [1, 1, '"1"'],
  );
  assert.deepEqual(
    [writeResponse.body.type, writeResponse.body.label, writeResponse.body.hosts, writeResponse.body.usedBy],
    ['api_key', 'Shop', hosts, []],
  );
  assert.match(writeResponse.body.fingerprint, /^hmac:[0-9a-f]{32}$/);
  const readResponse = await owner.send<StoredCredential>('GET', 'credentials/shop-api');
  const list = await owner.send<StoredCredentialPage>('GET', 'credentials');
  for (const { text } of [writeResponse, readResponse, list]) assert.doesNotMatch(text, /first-key/);
  assert.deepEqual(list.body.data, [readResponse.body]);
  assert.equal((await owner.send('GET', 'credentials/nothing')).status, 404);
});

test('an invalid credential is refused, and the error names the field but does not contain the value', async () => {
  const value = 'a-secret-that-is-misplaced';
  const cases: ReadonlyArray<readonly [body: object, path: string, code?: string]> = [
    [{ type: 'api_key', value: {}, hosts }, 'value.key'],
    [{ type: 'api_key', value: { key: value, password: value }, hosts }, 'value.password'],
    [{ type: 'api_key', value: { key: `${value}\r\nx: y` }, hosts }, 'value.key'],
    [{ type: 'api_key', value: { key: 1_234_567_890 }, hosts }, 'value.key'],
    [{ type: 'api_key', value: { key: [value] }, hosts }, 'value.key'],
    [{ type: 'api_key', value, hosts }, 'value'],
    [{ type: 'basic', value: { username: value, password: 'x' }, hosts }, 'value.password'],
    [{ type: 'private_key', value: { pem: value.repeat(4) }, hosts }, 'value.pem'],
    [{ type: 'file', value: { name: 'a', base64: `${value}!` }, hosts }, 'value.base64'],
    [{ type: 'api_key', value: { key: value } }, 'hosts'],
    [{ type: 'api_key', value: { key: value }, hosts: ['*.shop.example'] }, 'hosts[0]'],
    [{ type: 'api_key', value: { key: value }, hosts: ['https://shop.example/x'] }, 'hosts[0]'],
    [{ type: 'login', value: { username: value, password: value } }, 'origins'],
    [{ type: 'login', value: { username: value, password: value }, origins: ['shop.example'] }, 'origins[0]'],
    [{ type: 'api_key', value: { key: value, keys: value }, hosts }, 'value.keys', 'unknown_field'],
    [apiKeyCredential(value, { expiresAt: '2020-01-01T00:00:00.000Z' }), 'expiresAt'],
  ];
  for (const [body, path, code = 'invalid_request'] of cases) {
    const refusal = await owner.writeCredential('wrong', body);
    assert.deepEqual([refusal.status, refusal.body.code], [400, code], refusal.text);
    assert.ok(refusal.text.includes(`"${path}"`), `${path}: ${refusal.text}`);
    assert.doesNotMatch(refusal.text, /misplaced|1234567890/);
  }
  assert.equal((await owner.send('GET', 'credentials/wrong')).status, 404);
});

test('each type of credential can be stored, and equal values have equal fingerprints only within an application', async () => {
  const pem = `-----BEGIN PRIVATE KEY-----\n${'MC4CAQAwBQYDK2VwBCIEIA'.repeat(3)}\n-----END PRIVATE KEY-----\n`;
  const all = {
    one: { type: 'basic', value: { username: 'me', password: 'p4ssw0rd' }, hosts },
    two: {
      type: 'login',
      value: { username: 'me', password: 'p4ssw0rd', totpSeed: 'JBSWY3DPEHPK3PXP' },
      origins: ['https://bank.example'],
    },
    three: { type: 'oauth_client', value: { clientId: 'me', clientSecret: 's3cret-of-me' }, hosts },
    four: { type: 'private_key', value: { pem }, hosts },
    five: { type: 'file', value: { name: 'a.p12', base64: 'AAEC' }, hosts },
    six: { type: 'basic', value: { username: 'me', password: 'p4ssw0rd' }, hosts },
  };
  const fingerprints = new Map<string, string>();
  for (const [id, body] of Object.entries(all)) {
    const { status, body: made, text } = await owner.writeCredential(id, body);
    assert.equal(status, 201, text);
    fingerprints.set(id, made.fingerprint);
  }
  assert.equal(fingerprints.get('one'), fingerprints.get('six'));
  assert.equal(new Set(fingerprints.values()).size, 5);
  const token = await createOwnerToken(server);
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  const path = `/v1/applications/${applicationResponse.body.id}/credentials/one`;
  const credentialResponse = await server.api<StoredCredential>('PUT', path, { key: token, body: all.one });
  assert.equal(credentialResponse.status, 201, credentialResponse.text);
  assert.notEqual(
    credentialResponse.body.fingerprint,
    fingerprints.get('one'),
    'the fingerprint differs between applications',
  );
});

test('operations send a credential in the configured form, and cannot use a form that does not match the credential type', async () => {
  await owner.publish('orders.cancel', boundOperation({ credentialId: 'shop-api', as: 'bearer' }));
  assert.equal((await call('bearer')).body.status, 'succeeded');
  assert.equal(receivedHeadersOf('bearer')?.authorization, 'Bearer first-key-of-the-shop');
  await owner.publish('orders.cancel', boundOperation({ credentialId: 'shop-api', as: 'header', header: 'X-Api-Key' }));
  await call('header');
  assert.equal(receivedHeadersOf('header')?.['x-api-key'], 'first-key-of-the-shop');
  for (const [id, pair] of [
    ['one', 'me:p4ssw0rd'],
    ['three', 'me:s3cret-of-me'],
  ] as const) {
    await owner.publish('orders.cancel', boundOperation({ credentialId: id, as: 'basic' }));
    await call(id);
    assert.equal(receivedHeadersOf(id)?.authorization, `Basic ${Buffer.from(pair).toString('base64')}`);
  }
  for (const auth of [
    { credentialId: 'one', as: 'bearer' },
    { credentialId: 'two', as: 'basic' },
    { credentialId: 'four', as: 'header', header: 'x-a' },
  ]) {
    const refusal = await owner.configure('orders.cancel', boundOperation(auth), '*');
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
  }
  // The use of the credential is recorded while the call is still running.
  const credentialResponse = await eventually(
    'the use to be counted',
    () => owner.send<StoredCredential>('GET', 'credentials/three'),
    ({ body }) => body.lastUsedAt !== undefined,
  );
  assert.deepEqual(credentialResponse.body.usedBy, ['orders.cancel']);
});

test('a call that is running during a rotation uses the old value, and the next call uses the new value', async () => {
  await owner.publish('orders.cancel', boundOperation({ credentialId: 'shop-api', as: 'bearer' }));
  const heldResponses: Array<() => void> = [];
  upstream.respondTo('/orders/held', (_, response) => void heldResponses.push(() => sendJson(response, 200, {})));
  const runningCall = call('held');
  await eventually(
    'the call to arrive',
    () => heldResponses.length,
    length => length === 1,
  );
  assert.equal((await owner.writeCredential('shop-api', apiKeyCredential('second-key-of-the-shop'))).status, 428);
  assert.equal(
    (await owner.writeCredential('shop-api', apiKeyCredential('second-key-of-the-shop'), '"9"')).status,
    412,
  );
  const rotationResponse = await owner.writeCredential('shop-api', apiKeyCredential('second-key-of-the-shop'), '"1"');
  assert.deepEqual(
    [rotationResponse.status, rotationResponse.body.version, rotationResponse.body.revision],
    [200, 2, 2],
    rotationResponse.text,
  );
  assert.ok(rotationResponse.body.rollbackUntil);
  await call('after');
  heldResponses[0]?.();
  assert.equal((await runningCall).body.status, 'succeeded');
  assert.equal(receivedHeadersOf('held')?.authorization, 'Bearer first-key-of-the-shop');
  assert.equal(receivedHeadersOf('after')?.authorization, 'Bearer second-key-of-the-shop');
});

test('the previous value of a credential can be restored for a day, and is then deleted', async () => {
  const rollbackResponse = await owner.send<StoredCredential>('POST', 'credentials/shop-api/rollback');
  assert.deepEqual(
    [rollbackResponse.status, rollbackResponse.body.version, rollbackResponse.body.revision],
    [200, 3, 3],
    rollbackResponse.text,
  );
  await call('back');
  assert.equal(receivedHeadersOf('back')?.authorization, 'Bearer first-key-of-the-shop');
  await server.advance(25 * HOUR_MS);
  const readVersions = () =>
    queryRows(
      server,
      `select version from stored_credential_versions where credential_id = 'shop-api' order by version`,
    );
  await eventually('the earlier versions to be destroyed', readVersions, rows => rows.length === 1);
  assert.deepEqual(await readVersions(), [{ version: 3 }]);
  const rollbackRefusal = await owner.send('POST', 'credentials/shop-api/rollback');
  assert.deepEqual([rollbackRefusal.status, rollbackRefusal.body.code], [410, 'gone']);
});

test('the audit log records changes to credentials and uses of them, but not their values', async () => {
  const read = () => owner.send<AuditPage>('GET', 'audit?limit=100&action=credential.used');
  const auditResponse = await eventually('the uses to be recorded', read, ({ body }) => body.data.length >= 3);
  const shopEntry = auditResponse.body.data.find(({ target }) => target?.id === 'shop-api');
  assert.deepEqual([shopEntry?.actor.kind, shopEntry?.details?.operationId], ['agent_key', 'orders.cancel']);
  assert.ok(Number(shopEntry?.details?.calls) >= 2);
  const { body, text } = await owner.send<AuditPage>('GET', 'audit?limit=100');
  const actions = new Set(body.data.map(({ action }) => action));
  for (const action of ['credential.written', 'credential.rotated', 'credential.rolled_back'] as const)
    assert.ok(actions.has(action), action);
  assert.doesNotMatch(text, /key-of-the-shop|p4ssw0rd|s3cret/);
});

test('a credential of a published operation can be deleted only by force, and calls of the operation are then refused', async () => {
  assert.equal((await owner.send('DELETE', 'credentials/shop-api')).status, 428);
  const deletionRefusal = await owner.send('DELETE', 'credentials/shop-api', { ifMatch: '"3"' });
  assert.deepEqual([deletionRefusal.status, deletionRefusal.body.code], [409, 'not_ready']);
  assert.equal((await owner.send('DELETE', 'credentials/shop-api?force=true', { ifMatch: '"3"' })).status, 204);
  const requestsBefore = upstream.receivedRequests().length;
  const refusal = await call('gone');
  assert.deepEqual([refusal.status, refusal.body.code], [424, 'credential_missing'], refusal.text);
  assert.equal(upstream.receivedRequests().length, requestsBefore);
  assert.deepEqual(
    await queryRows(server, `select version from stored_credential_versions where credential_id = 'shop-api'`),
    [],
  );
  const writeResponse = await owner.writeCredential('shop-api', apiKeyCredential('third-key-of-the-shop'));
  assert.deepEqual([writeResponse.status, writeResponse.body.version], [201, 4], writeResponse.text);
  assert.equal((await call('again')).body.status, 'succeeded');
});

test('a call with an expired credential is refused', async () => {
  const expiresAt = new Date(server.now().getTime() + HOUR_MS).toISOString();
  assert.equal(
    (await owner.writeCredential('shop-api', apiKeyCredential('fourth-key-of-the-shop', { expiresAt }), '*')).status,
    200,
  );
  assert.equal((await call('early')).body.status, 'succeeded');
  await server.advance(2 * HOUR_MS);
  const lateRefusal = await call('late');
  assert.deepEqual([lateRefusal.status, lateRefusal.body.code], [424, 'credential_missing'], lateRefusal.text);
});
