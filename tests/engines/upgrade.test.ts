// Restores and upgrades a database of the first version of Berth. Its applications, keys, tokens and limits stay
// intact. first-version.sql is the output of pg_dump for an installation after its first start, with a token, and with
// a second application that has a key.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { recognize } from '../../server/domain/identity/credentials.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { systemClock } from '../../server/kit/clock.ts';
import type { ApplicationId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const DUMP = readFileSync(join(import.meta.dirname, 'first-version.sql'), 'utf8');

/** The key that the first start of that version printed. */
const FIRST_KEY = 'bak_dLvFLWS6tq6N2T9W0nSDcBUzhXs8XSs1WLDRByy4QX01FBar3';
const SECOND_KEY = 'bak_Nn-AKh_AuPuGkap-RTSriMWh9UCijVvkioYiZFMiPvU0Bctir';
const TOKEN = 'bpt_pdQX296k5pLdXxuILEWykcHjQD8SA6XEgaCxUdZP8As4TG1j3';
const SECOND_APPLICATION = '01a2074b-c3b1-78dd-ac14-9f7cff138604' as ApplicationId;

const scope = new Scope();
let store: Store;

before(async () => {
  const server = await startForeignServer(scope);
  const client = new pg.Client({ connectionString: server.url.reveal() });
  await client.connect();
  await client.query(DUMP);
  await client.end();
  const dataDir = makeTemporaryFolder(scope, 'upgraded');
  store = scope.own(await openStore({ databaseUrl: server.url, dataDir, log: silentLog, clock: systemClock }));
});
after(() => scope.close());

const hashOf = (text: string): Buffer => recognize(text)?.hash ?? assert.fail(`${text} is not recognized`);

test('after an upgrade, the account of the first start owns both applications, and nobody can sign in', async () => {
  const account = await store.accounts.first();
  assert.equal(account?.name, 'Operator');
  assert.equal(await store.accounts.canAnyoneSignIn(), false);
  const applications = await store.applications.list(account.id, { limit: 10 });
  assert.deepEqual(
    applications.map(({ name, role }) => [name, role]),
    [
      ['Shop', 'owner'],
      ['Default', 'owner'],
    ],
  );
});

test('after an upgrade, the existing keys and tokens are found by their hashes, with their scopes', async () => {
  const first = await store.keys.byHash(hashOf(FIRST_KEY));
  const second = await store.keys.byHash(hashOf(SECOND_KEY));
  assert.deepEqual([first?.name, second?.name, second?.applicationId], ['First key', 'shop', SECOND_APPLICATION]);
  assert.deepEqual([first?.revokedAt, second?.revokedAt], [undefined, undefined]);
  assert.ok(second?.scopes.includes('browsers:write'));
  const token = await store.tokens.byHash(hashOf(TOKEN));
  assert.deepEqual([token?.name, token?.kind, token?.applicationIds], ['ci', 'personal', undefined]);
  assert.ok(token?.scopes.includes('account:tokens'));
});

test('after an upgrade, the configured limits are kept', async () => {
  const row = await store.limits.get(SECOND_APPLICATION);
  assert.deepEqual(row?.configured, { browsers: { maxConcurrent: 7 } });
});

test('the account that was created at the first start can be given an e-mail address and is found by this address', async () => {
  const account = await store.accounts.first();
  assert.ok(account);
  assert.equal(await store.accounts.change(account.id, { email: 'ada@example.com' }), 'changed');
  assert.equal((await store.accounts.byEmail('ada@example.com'))?.id, account.id);
});
