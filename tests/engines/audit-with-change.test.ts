// A change and its entry in the audit log are one transaction: if the entry cannot be written, nothing is changed.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Audit } from '../../server/domain/audit/audit.ts';
import { AgentKeys } from '../../server/domain/identity/agent-keys.ts';
import { Applications } from '../../server/domain/identity/applications.ts';
import type { AccountCaller } from '../../server/domain/identity/caller.ts';
import { Cursors } from '../../server/domain/identity/cursors.ts';
import { Tokens } from '../../server/domain/identity/tokens.ts';
import { Limits } from '../../server/domain/limits/limits.ts';
import { localTallies } from '../../server/domain/limits/lone-tallies.ts';
import { utcDay } from '../../server/domain/limits/utc-day.ts';
import { CallCredentials } from '../../server/domain/stored-credentials/call-credentials.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import { type AccountId, newId, type TokenId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { makeTemporaryFolder } from './store-fixtures.ts';

const scope = new Scope();
after(() => scope.close());
const clock = systemClock;
const store = scope.own(await openStore({ dataDir: makeTemporaryFolder(scope, 'with-change'), log: silentLog, clock }));

/** Fails after the last statement of the transaction, as if the connection had been lost. */
class FailingAudit extends Audit {
  isFailing = false;

  override async record(...given: Parameters<Audit['record']>): Promise<void> {
    await super.record(...given);
    if (this.isFailing) throw new Error('the entry is not durable');
  }
}

const audit = new FailingAudit(store, clock);
const hashesOfChangedCredentials: string[] = [];
const dependencies = {
  ...{ store, clock, audit, log: silentLog, cursors: new Cursors(new Secret('x'.repeat(32)), clock) },
  onCredentialChanged: (hash: string) => void hashesOfChangedCredentials.push(hash),
};
const applications = new Applications(dependencies);
const keys = new AgentKeys({ ...dependencies, applications });
const tokens = new Tokens({ ...dependencies, applications, tallies: localTallies(clock) });
const limits = new Limits({
  ...dependencies,
  applications,
  ceiling: {},
  waitingOf: async () => 0,
  onChanged: () => {},
});

const accountId = newId<AccountId>(clock.now());
await store.accounts.insert({ id: accountId, name: 'Ada', createdAt: clock.now() });
const caller: AccountCaller = {
  ...{ kind: 'account', accountId, scopes: new Set(['applications:write']), cidrAllow: [], source: { ip: '::1' } },
  via: { kind: 'personal_token', id: newId<TokenId>(clock.now()) },
};
const { id } = await applications.insert(accountId, { name: 'Shop' });
const { row: key } = await keys.issue(id, { name: 'one' });
const { row: token } = await tokens.issue(accountId, { name: 'one', scopes: ['audit:read'] });

/** The state that the changes below modify. */
const readState = async (of: Store) => ({
  applications: await of.applications.list(accountId, { limit: 10 }),
  keys: await of.keys.list(id, clock.now(), { limit: 10 }),
  tokens: await of.tokens.list(accountId, clock.now(), { limit: 10 }),
  limits: await of.limits.get(id),
  entries: await of.audit.list(id, { limit: 100 }),
  entriesOfNone: await of.audit.list(undefined, { limit: 100 }),
});

const CHANGES: Readonly<Record<string, () => Promise<unknown>>> = {
  'an application is created': () => applications.insert(accountId, { name: 'Other' }),
  'an application is renamed': () => applications.rename(caller, id, '*', { name: 'Store' }),
  'an agent key is issued': () => keys.issue(id, { name: 'two' }),
  'an agent key is changed': () => keys.change(caller, id, key.id, '*', { name: 'new' }),
  'an agent key is rotated': () => keys.rotate(caller, id, key.id, {}),
  'an agent key is revoked': () => keys.end(id, key.id),
  'a token is issued': () => tokens.issue(accountId, { name: 'two', scopes: ['audit:read'] }),
  'a token is revoked': () => tokens.end(accountId, token.id),
  'limits are replaced': () => limits.replace(caller, id, '*', { browsers: { maxConcurrent: 3 } }),
};

for (const [name, change] of Object.entries(CHANGES))
  test(`${name} only together with an audit entry`, async () => {
    const stateBefore = await readState(store);
    audit.isFailing = true;
    await assert.rejects(change(), /the entry is not durable/);
    assert.deepEqual(await readState(store), stateBefore);
    audit.isFailing = false;
    await change();
    const { entries, entriesOfNone, ...after } = await readState(store);
    assert.notDeepEqual(after, stateBefore);
    const addedCount =
      entries.length + entriesOfNone.length - stateBefore.entries.length - stateBefore.entriesOfNone.length;
    // The first entry of a new application is in its own chain, which is not read here.
    assert.equal(addedCount, name === 'an application is created' ? 0 : 1);
  });

test('counted uses of credentials are removed only in the transaction that writes their audit entries', async () => {
  const open = () => Promise.reject(new Error('no value is opened'));
  const uses = new CallCredentials({ store, seal: { open }, audit, clock });
  const yesterday = utcDay(addMs(clock.now(), -86_400_000));
  const use = { applicationId: id, credentialId: 'shop-api', keyId: key.id, day: yesterday };
  for (const operationId of ['orders.cancel', 'orders.list'])
    await store.storedCredentials.count({ ...use, operationId }, clock.now());
  const stateBefore = await readState(store);
  audit.isFailing = true;
  await assert.rejects(uses.recordUses(), /the entry is not durable/);
  assert.deepEqual(await readState(store), stateBefore);
  audit.isFailing = false;
  assert.deepEqual(await uses.recordUses(), { recorded: 2 });
  assert.deepEqual(await uses.recordUses(), { recorded: 0 });
  assert.equal((await readState(store)).entries.length, stateBefore.entries.length + 2);
});
