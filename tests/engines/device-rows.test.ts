// The rows of device authorizations, on embedded PostgreSQL.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { TokenRow } from '../../server/engines/store/rows/credentials.ts';
import type { DeviceAuthorizationRow, TokenRequestEffect } from '../../server/engines/store/rows/device.ts';
import { addMs } from '../../server/kit/clock.ts';
import { type AccountId, type DeviceAuthorizationId, newId, type TokenId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { pollUntil } from '../../server/kit/wait.ts';
import { clockAt, makeTemporaryFolder, STEP_TIMEOUT_MS } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const MINUTE_MS = 60_000;
const EXPIRES_AT = addMs(NOW, 10 * MINUTE_MS);
const MANY = 10_000;

const scope = new Scope();
after(() => scope.close());
const dataDir = makeTemporaryFolder(scope, 'device-rows');
const store = scope.own(await openStore({ dataDir, log: silentLog, clock: clockAt(NOW) }));
const { device } = store;

async function insertAccount(): Promise<AccountId> {
  const id = newId<AccountId>(NOW);
  await store.accounts.insert({ id, name: 'Ada', createdAt: NOW });
  return id;
}

async function insertRow(more: Partial<DeviceAuthorizationRow> = {}): Promise<DeviceAuthorizationRow> {
  const row: DeviceAuthorizationRow = {
    id: newId<DeviceAuthorizationId>(NOW),
    deviceCodeHash: randomBytes(32),
    userCodeHash: randomBytes(32),
    clientId: 'my-agent',
    scopes: ['keys:write'],
    status: 'pending',
    requestedIp: '203.0.113.7',
    intervalSeconds: 5,
    startedAt: NOW,
    expiresAt: EXPIRES_AT,
    ...more,
  };
  assert.equal(await device.insert(row, MANY), 'inserted');
  return row;
}

async function insertApprovedRow(account: AccountId): Promise<DeviceAuthorizationRow> {
  const row = await insertRow();
  assert.ok(await device.claim(row.userCodeHash, account, NOW));
  const decision = { status: 'approved', scopes: ['keys:write'], applicationIds: [] } as const;
  assert.equal(await device.decide(row.id, account, NOW, decision), true);
  return row;
}

const makeToken = (accountId: AccountId): TokenRow => ({
  id: newId<TokenId>(NOW),
  accountId,
  ...{ name: 'x', prefix: 'bdt_x', hash: randomBytes(32), kind: 'developer', scopes: [], cidrAllow: [] },
  createdAt: NOW,
  applicationIds: [],
});

/** Decides to redeem the authorization if it is approved, regardless of the polling interval. */
const redeemEffect =
  (account: AccountId) =>
  (row: DeviceAuthorizationRow | undefined): TokenRequestEffect =>
    row?.status === 'approved' ? { kind: 'redeem', token: makeToken(account) } : { kind: 'nothing' };

test('an authorization is read back exactly as it was inserted', async () => {
  const row = await insertRow({ deviceName: 'laptop', codeChallenge: 'c', userAgent: 'x' });
  assert.deepEqual(await device.byDeviceCode(row.deviceCodeHash), row);
  assert.equal(await device.byDeviceCode(randomBytes(32)), undefined);
});

test('a duplicate user code is rejected, and the number of unexpired authorizations is limited', async () => {
  const row = await insertRow();
  const duplicateRow = { ...row, id: newId<DeviceAuthorizationId>(NOW), deviceCodeHash: randomBytes(32) };
  assert.equal(await device.insert(duplicateRow, MANY), 'code_taken');
  assert.equal(await device.insert({ ...duplicateRow, userCodeHash: randomBytes(32) }, 1), 'limit_reached');
});

test('only one of several concurrent claims succeeds, and only the account that made this claim can read the authorization again', async () => {
  const row = await insertRow();
  const accounts = await Promise.all(Array.from({ length: 10 }, insertAccount));
  const claims = await Promise.all(accounts.map(account => device.claim(row.userCodeHash, account, NOW)));
  const [winner, ...others] = claims.filter(claim => claim !== undefined);
  assert.deepEqual([winner?.isFirst, winner?.row.status, others.length], [true, 'claimed', 0]);
  const owner = winner?.row.accountId ?? assert.fail('no account has claimed the authorization');
  assert.equal((await device.claim(row.userCodeHash, owner, NOW))?.isFirst, false);
  assert.equal((await device.getClaimed(row.userCodeHash, owner, NOW))?.id, row.id);
  assert.equal(await device.getClaimed(row.userCodeHash, await insertAccount(), NOW), undefined);
  assert.equal(await device.claim(row.userCodeHash, owner, EXPIRES_AT), undefined, 'expired');
});

test('only the account that claimed an authorization can decide on it, only once and only before it expires', async () => {
  const account = await insertAccount();
  const row = await insertRow();
  const denial = { status: 'denied' } as const;
  assert.equal(await device.decide(row.id, account, NOW, denial), false, 'unclaimed');
  await device.claim(row.userCodeHash, account, NOW);
  assert.equal(await device.decide(row.id, await insertAccount(), NOW, denial), false);
  assert.equal(await device.decide(row.id, account, EXPIRES_AT, denial), false);
  const decisions = await Promise.all(Array.from({ length: 10 }, () => device.decide(row.id, account, NOW, denial)));
  assert.equal(decisions.filter(Boolean).length, 1);
});

test('fifty concurrent collect calls insert one token', async () => {
  const account = await insertAccount();
  const row = await insertApprovedRow(account);
  const collect = () => device.collect(row.deviceCodeHash, NOW, redeemEffect(account), MANY);
  const results = await Promise.all(Array.from({ length: 50 }, collect));
  const redeemedResults = results.filter(({ verdict }) => verdict !== 'limit_reached' && verdict.kind === 'redeem');
  assert.equal(redeemedResults.length, 1);
  const tokens = await store.tokens.list(account, NOW, { limit: 100 });
  assert.equal(tokens.length, 1);
  assert.equal((await device.byDeviceCode(row.deviceCodeHash))?.tokenId, tokens[0]?.id);
});

test('an account with the maximum number of tokens gets no further token, and the approval stays valid', async () => {
  const account = await insertAccount();
  const row = await insertApprovedRow(account);
  assert.equal((await device.collect(row.deviceCodeHash, NOW, redeemEffect(account), 0)).verdict, 'limit_reached');
  assert.equal((await device.byDeviceCode(row.deviceCodeHash))?.status, 'approved');
  assert.deepEqual(await store.tokens.list(account, NOW, { limit: 100 }), []);
});

test('a notification is sent for a revocation and for every change of status', async () => {
  const changedIds: string[] = [];
  const revokedHashes: string[] = [];
  scope.own(await store.listen('device_changed', id => changedIds.push(id), assert.fail));
  scope.own(await store.listen('credential_revoked', hash => revokedHashes.push(hash), assert.fail));
  const account = await insertAccount();
  const row = await insertApprovedRow(account);
  await device.collect(row.deviceCodeHash, NOW, redeemEffect(account), MANY);
  const [token] = await store.tokens.list(account, NOW, { limit: 100 });
  assert.ok(token);
  await device.collect(row.deviceCodeHash, NOW, () => ({ kind: 'revoke', token: token.id }), MANY);
  assert.deepEqual((await store.tokens.byHash(token.hash))?.revokedAt, NOW);
  const isAllHeard = () => (changedIds.length === 3 && revokedHashes.length === 1 ? true : undefined);
  await pollUntil(STEP_TIMEOUT_MS, 'the notices', isAllHeard);
  assert.deepEqual([...new Set(changedIds)], [row.id]);
  assert.deepEqual(revokedHashes, [token.hash.toString('hex')]);
});

test('authorizations that expired before a given time are removed', async () => {
  const [oldRow, youngRow] = [
    await insertRow({ expiresAt: addMs(NOW, MINUTE_MS) }),
    await insertRow({ expiresAt: addMs(EXPIRES_AT, 1) }),
  ];
  await device.removeExpired(EXPIRES_AT);
  assert.equal(await device.byDeviceCode(oldRow.deviceCodeHash), undefined);
  assert.ok(await device.byDeviceCode(youngRow.deviceCodeHash));
});
