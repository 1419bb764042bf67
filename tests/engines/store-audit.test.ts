// The audit log in the database: numbers without gaps, and rows that the server cannot change or remove.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { NewAuditRow } from '../../server/engines/store/rows/audit.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type AuditId, newId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { clockAt, makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const DAY_MS = 24 * 60 * 60_000;
const clock = clockAt(NOW);

const anEntry = (more: Partial<NewAuditRow> = {}): NewAuditRow => ({
  ...{ id: newId<AuditId>(NOW), at: NOW, action: 'agent_key.created', outcome: 'success' },
  ...{ actor: { kind: 'operator' }, details: {} },
  ...more,
});

async function withClient<T>(login: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(login);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const runSql = (login: pg.ClientConfig, text: string) =>
  withClient(login, async client => (await client.query(text)).rows);

const CHANGES = [
  `update audit_entries set action = 'other'`,
  'delete from audit_entries',
  'truncate audit_entries',
  `insert into audit_seals values (gen_random_uuid(), 1, 1, 1, '{}', 'x', now()); update audit_seals set jws = 'y'`,
];

describe('the audit log', () => {
  const scope = new Scope();
  const dataDir = makeTemporaryFolder(scope, 'audit');
  let store: Store;
  let login: pg.ClientConfig;

  before(async () => {
    store = scope.own(await openStore({ dataDir, log: silentLog, clock }));
    login = socketLogin(findPostmaster(dataDir) ?? assert.fail('PostgreSQL is not running'));
  });
  after(() => scope.close());

  const runSqlAsServer = (text: string) =>
    withClient(login, async client => {
      const { rows } = await client.query(
        `select 'berth_server_' || oid as role from pg_database where datname = current_database()`,
      );
      await client.query(`set role ${rows[0].role}`);
      return (await client.query(text)).rows;
    });

  it('the audit log returns its entries as written, newest first, with the name of the account', async () => {
    const accountId = newId<AccountId>(NOW);
    await store.accounts.insert({ id: accountId, name: 'Ada', createdAt: NOW });
    const applicationId = newId<ApplicationId>(NOW);
    const fullEntry = anEntry({
      ...{ applicationId, accountId, outcome: 'refused', actor: { kind: 'account', id: accountId } },
      ...{ via: { kind: 'token', id: 't' }, target: { kind: 'agent_key', id: 'k' } },
      ...{ ip: '::1', userAgent: 'curl', requestId: 'r', details: { scopes: ['a'], 'needs Quoting': 1 } },
    });
    await store.audit.insert(fullEntry);
    const secondEntry = anEntry({ applicationId, at: addMs(NOW, 1) });
    await store.audit.insert(secondEntry);
    const namedEntry = { ...fullEntry, number: 1, actor: { kind: 'account', id: accountId, name: 'Ada' } };
    const list = (more = {}) => store.audit.list(applicationId, { limit: 10, ...more });
    assert.deepEqual(await list(), [{ ...secondEntry, number: 2 }, namedEntry]);
    assert.deepEqual(await list({ before: secondEntry.id }), [namedEntry]);
    assert.deepEqual(await list({ after: NOW }), [{ ...secondEntry, number: 2 }]);
    assert.deepEqual(await list({ actorId: accountId }), [namedEntry]);
    assert.deepEqual(await list({ action: 'limits.changed' }), []);
    assert.deepEqual(await store.audit.list(newId<ApplicationId>(NOW), { limit: 10 }), []);
  });

  it('the entries of each application are numbered without gaps, even with concurrent writers', async () => {
    const [one, other] = [newId<ApplicationId>(NOW), newId<ApplicationId>(NOW)];
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        store.audit.insert(anEntry({ applicationId: index % 3 === 0 ? other : one })),
      ),
    );
    const readNumbers = async (id: ApplicationId) =>
      (await store.audit.list(id, { limit: 100 })).map(({ number }) => number).reverse();
    assert.deepEqual(
      await readNumbers(one),
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    assert.deepEqual(
      await readNumbers(other),
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  it('the server role cannot change entries, and cannot execute statements that alter tables', async () => {
    assert.ok(store.isConfined);
    await store.audit.insert(anEntry());
    for (const change of [
      ...CHANGES,
      'alter table audit_entries disable trigger all',
      'drop table audit_seals',
      'drop trigger audit_entries_kept on audit_entries',
      'create or replace function refuse_audit_change() returns trigger language plpgsql as $$ begin return old; end $$',
      'create table more (id int)',
      'select * from berth_migrations',
    ])
      await assert.rejects(runSqlAsServer(change), /permission denied|must be owner/, change);
  });

  it('even the owner of the tables cannot change entries while the triggers exist', async () => {
    for (const change of CHANGES) await assert.rejects(runSql(login, change), /never changed/, change);
  });

  it('the server role can insert, update and delete in tables that a later migration creates', async () => {
    await runSql(login, 'create table later (id bigint generated always as identity primary key, word text)');
    await (await openStore({ dataDir, log: silentLog, clock, isBesideServer: true })).close();
    await runSqlAsServer(`insert into later (word) values ('a'); update later set word = 'b'; delete from later`);
    await runSql(login, 'drop table later');
  });

  it('an entry can be deleted only once both the entry and its seal are old enough', async () => {
    const applicationId = newId<ApplicationId>(NOW);
    const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);
    for (const days of [500, 450, 410, 399]) await store.audit.insert(anEntry({ applicationId, at: daysAgo(days) }));
    const forget = () => store.audit.forget(1000);
    assert.equal(await forget(), 0, 'nothing is sealed yet');
    const seal = (number: number, first: number, last: number, days: number) =>
      runSqlAsServer(`insert into audit_seals values ('${applicationId}', ${number}, ${first}, ${last}, '{}', 'x',
        now() - interval '${days} days')`);
    await seal(1, 1, 1, 499);
    await seal(2, 2, 2, 449);
    await seal(3, 3, 4, 398);
    assert.equal(await forget(), 3, 'two entries and the first seal');
    const left = (await store.audit.list(applicationId, { limit: 10 })).map(({ number }) => number);
    assert.deepEqual(left, [4, 3]);
    assert.equal(await forget(), 0);
    await store.audit.insert(anEntry({ applicationId }));
    assert.equal((await store.audit.list(applicationId, { limit: 1 }))[0]?.number, 5);
  });
});

describe("the audit log in an operator's database", () => {
  const scope = new Scope();
  after(() => scope.close());

  it("in an operator's database, the audit log is protected by a server role if the database user can create roles, and by triggers otherwise", async () => {
    const server = await startForeignServer(scope);
    const adminLogin = { connectionString: server.url.reveal() };
    for (const [user, right, isConfined] of [
      ['maker', 'createrole', true],
      ['plain', 'nocreaterole', false],
    ] as const) {
      await runSql(adminLogin, `create role ${user} login password 'secret' ${right}`);
      await runSql(adminLogin, `create database ${user} owner ${user}`);
      const url = new URL(server.url.reveal());
      Object.assign(url, { username: user, password: 'secret', pathname: `/${user}` });
      const options = {
        databaseUrl: new Secret(url.href),
        dataDir: makeTemporaryFolder(scope, 'unused'),
        log: silentLog,
      };
      for (const time of ['first', 'second']) {
        const store = await openStore({ ...options, clock });
        await store.audit.insert(anEntry());
        assert.equal(store.isConfined, isConfined, `${user}, ${time}`);
        await store.close();
      }
      for (const change of CHANGES)
        await assert.rejects(runSql({ connectionString: url.href }, change), /never changed/, change);
    }
  });
});
