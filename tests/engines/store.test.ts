// The store, on the embedded PostgreSQL and on an operator's server.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { openDatabase } from '../../server/engines/store/database.ts';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { migrations } from '../../server/engines/store/migrations/index.ts';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { AccountRow, ApplicationRow } from '../../server/engines/store/rows/accounts.ts';
import type { KeyRow, TokenRow } from '../../server/engines/store/rows/credentials.ts';
import type { NewSession, SessionRow } from '../../server/engines/store/rows/sessions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import { isFault } from '../../server/kit/fault.ts';
import {
  type AccountId,
  type ApplicationId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
  type TokenId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { pollUntil } from '../../server/kit/wait.ts';
import {
  backendsOf,
  clockAt,
  type ForeignServer,
  makeTemporaryFolder,
  STEP_TIMEOUT_MS,
  signalIfRunning,
  startForeignServer,
  waitUntilGone,
} from './store-fixtures.ts';

interface TestDatabase {
  readonly options: StoreOptions;
  postmasterPid(): number;
  /**
   * Kills the postmaster with SIGKILL. The store restarts an embedded postmaster, and the fixture restarts that of an
   * operator.
   */
  crash(): Promise<void>;
  /** The operator's login, for SQL statements that the store does not offer. */
  readonly login: pg.ClientConfig;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** With milliseconds, so that rounding would be noticed. */
const NOW = new Date('2026-11-20T10:00:00.123Z');
const clock = clockAt(NOW);

describeStore('embedded', async scope => {
  const dataDir = makeTemporaryFolder(scope, 'store');
  const runningPostmaster = () => findPostmaster(dataDir) ?? assert.fail('PostgreSQL is not running');
  return {
    options: { dataDir, log: silentLog, clock },
    postmasterPid: () => runningPostmaster().pid,
    crash: async () => void process.kill(runningPostmaster().pid, 'SIGKILL'),
    get login() {
      return socketLogin(runningPostmaster());
    },
  };
});

describeStore('external', async scope => {
  const server = await startForeignServer(scope);
  return {
    options: { databaseUrl: server.url, dataDir: makeTemporaryFolder(scope, 'unused'), log: silentLog, clock },
    postmasterPid: () => server.pid,
    crash: () => server.crash(),
    login: { connectionString: server.url.reveal() },
  };
});

function describeStore(name: string, prepare: (scope: Scope) => Promise<TestDatabase>): void {
  describe(`store, ${name} database`, () => {
    const scope = new Scope();
    let database: TestDatabase;
    let store: Store;

    before(async () => {
      database = await prepare(scope);
      store = scope.own(await openStore(database.options));
    });
    after(() => scope.close());

    const anAccount = async (): Promise<AccountRow> => {
      const account: AccountRow = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
      await store.accounts.insert(account);
      return account;
    };
    const anApplication = async (account?: AccountRow, name = 'Shop'): Promise<ApplicationRow> => {
      const owner = account ?? (await anAccount());
      const row = newApplication(owner.id, name);
      assert.equal(await store.applications.insert(row, owner.id, 50), 'inserted');
      return row;
    };
    const aHost = async (slots = 1000): Promise<HostId> => {
      const id = newId<HostId>(NOW);
      await store.hosts.announce({ id, region: 'local', slots, startedAt: NOW });
      return id;
    };
    const aSession = async (more: Partial<NewSession> = {}): Promise<SessionRow> => {
      const applicationId = more.applicationId ?? (await anApplication()).id;
      const hostId = more.hostId ?? (await aHost());
      const result = await store.sessions.place(newSession({ ...more, applicationId, hostId }));
      assert.ok('placed' in result);
      return result.placed;
    };
    const aRunningSession = async (more: Partial<NewSession> = {}): Promise<SessionRow> => {
      const row = await aSession(more);
      return (await store.sessions.markRunning(row.id, NOW)) ?? assert.fail('the session did not start running');
    };

    describe('accounts', () => {
      it('the first account is returned with its creation time to the millisecond', async () => {
        const ownAccount = await anAccount();
        const first = await store.accounts.first();
        assert.ok(first);
        assert.equal(first.createdAt.toISOString(), '2026-11-20T10:00:00.123Z');
        assert.ok(first.id <= ownAccount.id);
      });
    });

    describe('applications', () => {
      it('an application is inserted with the account as its owner, and is found by id, slug and name', async () => {
        const account = await anAccount();
        const row = newApplication(account.id, `Shop ${randomBytes(4).toString('hex')}`);
        assert.equal(await store.applications.insert(row, account.id, 50), 'inserted');
        assert.deepEqual(await store.applications.get(row.id, account.id), { ...row, role: 'owner' });
        assert.deepEqual(await store.applications.byId(row.id), row);
        for (const name of [row.id, row.slug, row.name]) assert.deepEqual(await store.applications.find(name), [row]);
        assert.deepEqual(await store.applications.find("' or true --"), []);
        assert.deepEqual(await store.applications.find('\0'), []);
      });

      it('a search for a name finds all applications with that name or, if a slug equals the name, only the application with that slug', async () => {
        const account = await anAccount();
        const name = `twin-${randomBytes(4).toString('hex')}`;
        const [one, two] = [await anApplication(account, name), await anApplication(account, name)];
        assert.deepEqual(new Set((await store.applications.find(name)).map(row => row.id)), new Set([one.id, two.id]));
        const three = { ...newApplication(account.id, 'other'), id: newId<ApplicationId>(addMs(NOW, -1)), slug: name };
        assert.equal(await store.applications.insert(three, account.id, 50), 'inserted');
        assert.deepEqual(await store.applications.find(name), [three]);
        for (let more = 0; more < 20; more += 1) await anApplication(account, name);
        assert.deepEqual(await store.applications.find(name), [three], 'the slug has precedence over names');
      });

      it('an application is hidden from an account that is not a member', async () => {
        const row = await anApplication();
        const stranger = await anAccount();
        assert.equal(await store.applications.get(row.id, stranger.id), undefined);
        assert.deepEqual(await store.applications.list(stranger.id, { limit: 10 }), []);
      });

      it('an application whose slug is already taken is refused, and no row is inserted', async () => {
        const account = await anAccount();
        const first = await anApplication(account);
        const second = { ...newApplication(account.id, 'Other'), slug: first.slug };
        assert.equal(await store.applications.insert(second, account.id, 50), 'slug_taken');
        assert.equal(await store.applications.byId(second.id), undefined);
        assert.equal((await store.applications.list(account.id, { limit: 10 })).length, 1);
      });

      it('the limit of applications is enforced for concurrent inserts', async () => {
        const account = await anAccount();
        const insert = () => store.applications.insert(newApplication(account.id, 'Rush'), account.id, 3);
        const outcomes = await Promise.all(Array.from({ length: 20 }, insert));
        assert.equal(outcomes.filter(response => response === 'inserted').length, 3);
        assert.equal(outcomes.filter(response => response === 'limit_reached').length, 17);
      });

      it('applications are listed newest first, without gaps or repetitions between the pages of the list', async () => {
        const account = await anAccount();
        for (let made = 0; made < 5; made += 1) await anApplication(account);
        const pages = await pagesOf<ApplicationId>(before =>
          store.applications.list(account.id, { limit: 2, ...before }),
        );
        assert.deepEqual(
          pages.map(page => page.length),
          [2, 2, 1],
        );
        const ids = pages.flat();
        assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
      });

      it('only one of two concurrent calls renames an application, and only if the revision is current', async () => {
        const row = await anApplication();
        const renamedAt = addMs(NOW, 1);
        const renamedRow = { ...row, name: 'New', revision: 2, updatedAt: renamedAt };
        const both = await Promise.all([1, 2].map(() => store.applications.rename(row.id, 1, 'New', renamedAt)));
        assert.deepEqual(both.filter(Boolean), [renamedRow]);
        assert.equal(await store.applications.rename(row.id, 1, 'Stale', renamedAt), undefined);
        assert.deepEqual(await store.applications.byId(row.id), renamedRow);
      });
    });

    describe('keys', () => {
      it('an inserted key is found by hash and by id, with exactly the fields that were inserted', async () => {
        const row = newKey((await anApplication()).id);
        assert.equal(await store.keys.insert(row, 10), 'inserted');
        assert.deepEqual(await store.keys.byHash(row.hash), row);
        assert.deepEqual(await store.keys.get(row.applicationId, row.id), row);
        assert.equal(await store.keys.byHash(randomBytes(32)), undefined);
        const fullKey = {
          ...newKey(row.applicationId),
          cidrAllow: ['10.0.0.0/8', 'a"b,c{}\\'],
          expiresAt: addMs(NOW, DAY_MS),
        };
        assert.equal(await store.keys.insert(fullKey, 10), 'inserted');
        assert.deepEqual(await store.keys.byHash(fullKey.hash), fullKey);
      });

      it('keys of another application are not returned, updated or revoked', async () => {
        const row = newKey((await anApplication()).id);
        await store.keys.insert(row, 10);
        const otherId = (await anApplication()).id;
        assert.equal(await store.keys.get(otherId, row.id), undefined);
        assert.equal(await store.keys.change(otherId, row.id, 1, { name: 'mine now' }), undefined);
        assert.equal(await store.keys.revoke(otherId, row.id, NOW), false);
        assert.deepEqual(await store.keys.list(otherId, NOW, { limit: 10 }), []);
      });

      it('only valid keys count towards the limit, even for concurrent inserts', async () => {
        const { id } = await anApplication();
        await store.keys.insert({ ...newKey(id), expiresAt: addMs(NOW, -1) }, 2);
        await store.keys.insert({ ...newKey(id), revokedAt: addMs(NOW, -1) }, 2);
        const outcomes = await Promise.all(Array.from({ length: 12 }, () => store.keys.insert(newKey(id), 2)));
        assert.equal(outcomes.filter(response => response === 'inserted').length, 2);
      });

      it('a key is updated only if the revision is current', async () => {
        const row = newKey((await anApplication()).id);
        await store.keys.insert(row, 10);
        const expiresAt = addMs(NOW, DAY_MS);
        const changedRow = { ...row, name: 'day', cidrAllow: ['::1/128'], expiresAt, revision: 2 };
        const change = { name: 'day', cidrAllow: ['::1/128'], expiresAt };
        assert.deepEqual(await store.keys.change(row.applicationId, row.id, 1, change), changedRow);
        assert.equal(await store.keys.change(row.applicationId, row.id, 1, { name: 'stale' }), undefined);
        assert.deepEqual(await store.keys.change(row.applicationId, row.id, 2, {}), { ...changedRow, revision: 3 });
      });

      it('a key is revoked once, and a revoked key cannot be updated', async () => {
        const row = newKey((await anApplication()).id);
        await store.keys.insert(row, 10);
        const revoke = () => store.keys.revoke(row.applicationId, row.id, NOW);
        const outcomes = await Promise.all([revoke(), revoke(), revoke()]);
        assert.deepEqual(outcomes.sort(), [false, false, true]);
        assert.deepEqual((await store.keys.byHash(row.hash))?.revokedAt, NOW);
        assert.equal(await store.keys.change(row.applicationId, row.id, 2, { name: 'back' }), undefined);
      });

      it('an expired key is not revoked', async () => {
        const row = { ...newKey((await anApplication()).id), expiresAt: NOW };
        await store.keys.insert(row, 10);
        assert.equal(await store.keys.revoke(row.applicationId, row.id, NOW), false);
      });

      it('keys are listed newest first, and revoked or expired keys are listed for ninety days', async () => {
        const { id } = await anApplication();
        const ninetyDaysMs = 90 * DAY_MS;
        const aliveKey = newKey(id);
        const freshKey = { ...newKey(id), revokedAt: addMs(NOW, 1 - ninetyDaysMs) };
        const oldKey = { ...newKey(id), revokedAt: addMs(NOW, -ninetyDaysMs), expiresAt: addMs(NOW, DAY_MS) };
        const expiredKey = { ...newKey(id), expiresAt: addMs(NOW, -ninetyDaysMs - 1) };
        for (const row of [aliveKey, freshKey, oldKey, expiredKey]) await store.keys.insert(row, 10);
        const listedKeys = await store.keys.list(id, NOW, { limit: 10 });
        assert.deepEqual(
          listedKeys.map(row => row.id),
          [freshKey.id, aliveKey.id].sort().reverse(),
        );
        const [first] = await store.keys.list(id, NOW, { limit: 1 });
        assert.ok(first);
        const rest = await store.keys.list(id, NOW, { limit: 10, before: first.id });
        assert.deepEqual(
          rest.map(row => row.id),
          listedKeys.slice(1).map(row => row.id),
        );
      });

      it('the latest use of a key is kept even if the writes arrive out of order', async () => {
        const row = newKey((await anApplication()).id);
        await store.keys.insert(row, 10);
        await store.keys.touch(row.id, addMs(NOW, 2), '10.0.0.2');
        await store.keys.touch(row.id, addMs(NOW, 1), '10.0.0.1');
        const used = await store.keys.byHash(row.hash);
        assert.deepEqual([used?.lastUsedAt, used?.lastUsedIp], [addMs(NOW, 2), '10.0.0.2']);
      });
    });

    describe('tokens', () => {
      it('an inserted token is found by hash and by id, with exactly the fields that were inserted', async () => {
        const account = await anAccount();
        const openToken = newToken(account.id);
        const narrowToken = {
          ...newToken(account.id),
          applicationIds: [newId<ApplicationId>(NOW), newId<ApplicationId>(NOW)],
        };
        for (const row of [openToken, narrowToken]) {
          assert.equal(await store.tokens.insert(row, 10), 'inserted');
          assert.deepEqual(await store.tokens.byHash(row.hash), row);
          assert.deepEqual(await store.tokens.get(account.id, row.id), row);
        }
        assert.deepEqual((await store.tokens.list(account.id, NOW, { limit: 10 })).length, 2);
        assert.equal(await store.tokens.get((await anAccount()).id, openToken.id), undefined);
      });

      it('concurrent inserts cannot exceed the limit on tokens of an account', async () => {
        const { id } = await anAccount();
        const outcomes = await Promise.all(Array.from({ length: 12 }, () => store.tokens.insert(newToken(id), 2)));
        assert.equal(outcomes.filter(response => response === 'limit_reached').length, 10);
      });

      it('only tokens of the given account are revoked, and only once', async () => {
        const row = newToken((await anAccount()).id);
        await store.tokens.insert(row, 10);
        assert.equal(await store.tokens.revoke((await anAccount()).id, row.id, NOW), false);
        assert.equal(await store.tokens.revoke(row.accountId, row.id, NOW), true);
        assert.equal(await store.tokens.revoke(row.accountId, row.id, NOW), false);
        assert.equal(await store.tokens.touch(row.id, NOW, '::1'), true);
        assert.equal(await store.tokens.touch(row.id, NOW, '::1'), false);
        const rowAfter = { ...row, revokedAt: NOW, lastUsedAt: NOW, lastUsedIp: '::1' };
        assert.deepEqual(await store.tokens.byHash(row.hash), rowAfter);
      });
    });

    describe('notifications', () => {
      it('every open listener is notified of a revoked key and token', async () => {
        const receivedHashes: string[] = [];
        const otherHashes: string[] = [];
        const listener = await store.listen('credential_revoked', hash => receivedHashes.push(hash), assert.fail);
        const secondListener = await store.listen('credential_revoked', hash => otherHashes.push(hash), assert.fail);
        const revokedKey = newKey((await anApplication()).id);
        const revokedToken = newToken((await anAccount()).id);
        await store.keys.insert(revokedKey, 10);
        await store.tokens.insert(revokedToken, 10);
        await store.keys.revoke(revokedKey.applicationId, revokedKey.id, NOW);
        await pollUntil(STEP_TIMEOUT_MS, 'the notices', () =>
          receivedHashes.length === 1 && otherHashes.length === 1 ? true : undefined,
        );
        await secondListener.close();
        await store.tokens.revoke(revokedToken.accountId, revokedToken.id, NOW);
        await pollUntil(STEP_TIMEOUT_MS, 'the second notice', () => (receivedHashes.length === 2 ? true : undefined));
        assert.deepEqual(receivedHashes, [revokedKey.hash.toString('hex'), revokedToken.hash.toString('hex')]);
        assert.deepEqual(otherHashes, receivedHashes.slice(0, 1));
        await listener.close();
      });

      it('listeners are not notified of the revocation of a key that does not exist', async () => {
        const receivedHashes: string[] = [];
        const listener = await store.listen('credential_revoked', hash => receivedHashes.push(hash), assert.fail);
        const [gone, real] = [newKey((await anApplication()).id), newKey((await anApplication()).id)];
        await store.keys.insert(real, 10);
        await store.keys.revoke(gone.applicationId, gone.id, NOW);
        await store.keys.revoke(real.applicationId, real.id, NOW);
        await pollUntil(STEP_TIMEOUT_MS, 'the notice', () => (receivedHashes.length > 0 ? true : undefined));
        assert.deepEqual(receivedHashes, [real.hash.toString('hex')]);
        await listener.close();
      });
    });

    describe('placing a session', () => {
      it('placing a session returns the whole row', async () => {
        const applicationId = (await anApplication()).id;
        const aKey = newKey(applicationId);
        await store.keys.insert(aKey, 10);
        const newRow = newSession({
          applicationId,
          hostId: await aHost(),
          keyId: aKey.id,
          keepAlive: true,
          userMetadata: { snake_case: { camelCase: [1, null, { a_b: 'ü💥' }] }, ['__proto__']: { polluted: 'no' } },
          settings: { viewport: { width: 1 } },
          connectBy: addMs(NOW, MINUTE_MS),
        });
        const expected: SessionRow = {
          ...newRow,
          status: 'PENDING',
          proxyBytes: 0,
          egressBytes: 0,
          updatedAt: NOW,
          attached: false,
        };
        assert.deepEqual(await store.sessions.place(newRow), { placed: expected });
        assert.deepEqual(await store.sessions.get(applicationId, newRow.id), expected);
        assert.deepEqual(await store.sessions.byId(newRow.id), expected);
        assert.equal(await store.sessions.get((await anApplication()).id, newRow.id), undefined);
      });

      it('of fifty sessions that are placed concurrently on a host with ten slots, exactly ten are accepted, and the slot of an ended session is reused', async () => {
        const hostId = await aHost(10);
        const applicationId = (await anApplication()).id;
        const placeSession = () => store.sessions.place(newSession({ applicationId, hostId }));
        const outcomes = await Promise.all(Array.from({ length: 50 }, placeSession));
        const placedRows = outcomes.flatMap(response => ('placed' in response ? [response.placed] : []));
        assert.equal(placedRows.length, 10);
        for (const response of outcomes)
          if ('full' in response) assert.deepEqual(response, { full: { slots: 10, used: 10 } });
        const [first] = placedRows;
        assert.ok(first);
        await finishAs(store, first.id, 'COMPLETED');
        assert.ok('placed' in (await placeSession()));
        assert.ok('full' in (await placeSession()));
      });

      it('the most recently announced number of slots applies', async () => {
        const hostId = await aHost(0);
        const applicationId = (await anApplication()).id;
        const placeSession = () => store.sessions.place(newSession({ applicationId, hostId }));
        assert.deepEqual(await placeSession(), { full: { slots: 0, used: 0 } });
        await store.hosts.announce({ id: hostId, region: 'other', slots: 1, startedAt: addMs(NOW, 1) });
        assert.ok('placed' in (await placeSession()));
      });
    });

    describe('listing sessions', () => {
      it('sessions are listed newest first, and the position in the list is kept while new sessions are placed', async () => {
        const applicationId = (await anApplication()).id;
        const hostId = await aHost();
        const sessionIds: SessionId[] = [];
        for (let at = 0; at < 5; at += 1) sessionIds.push((await aSession({ applicationId, hostId, id: idAt(at) })).id);
        let nextMs = 100;
        const pages = await pagesOf<SessionId>(async before => {
          const page = await store.sessions.list(applicationId, { limit: 2, ...before });
          await aSession({ applicationId, hostId, id: idAt(nextMs++) });
          return page;
        });
        assert.deepEqual(pages.flat(), sessionIds.reverse());
      });

      it('sessions can be filtered by status', async () => {
        const applicationId = (await anApplication()).id;
        const runningSession = await aRunningSession({ applicationId });
        const pendingSession = await aSession({ applicationId });
        const ids = async (statuses: SessionRow['status'][]) =>
          new Set((await store.sessions.list(applicationId, { limit: 10, statuses })).map(row => row.id));
        assert.deepEqual(await ids(['RUNNING']), new Set([runningSession.id]));
        assert.deepEqual(await ids(['RUNNING', 'PENDING']), new Set([runningSession.id, pendingSession.id]));
        assert.deepEqual(await ids(['ERROR']), new Set());
        assert.deepEqual(await ids([]), new Set());
      });

      it('a metadata filter matches string leaves of the metadata and nothing else', async () => {
        const applicationId = (await anApplication()).id;
        const userMetadata = {
          a: { b: 'v', n: 1, list: ['v'], deep: { er: 'w' } },
          "quote'": 'x"y\\z',
          empty: '',
          ['__proto__']: 'p',
        };
        const { id } = await aSession({ applicationId, userMetadata });
        await aSession({ applicationId, userMetadata: { a: 'v' } });
        const findMatches = async (...terms: Array<[string[], string]>) => {
          const metadata = terms.map(([path, value]) => ({ path, value }));
          return (await store.sessions.list(applicationId, { limit: 10, metadata })).map(row => row.id);
        };
        const hits: Array<[string[], string]> = [
          [['a', 'b'], 'v'],
          [['a', 'deep', 'er'], 'w'],
          [["quote'"], 'x"y\\z'],
          [['empty'], ''],
          [['__proto__'], 'p'],
        ];
        for (const hit of hits) assert.deepEqual(await findMatches(hit), [id], hit.join());
        assert.deepEqual(await findMatches(...hits), [id]);
        const misses: Array<[string[], string]> = [
          [['a', 'b'], 'V'],
          [['a', 'b'], 'v '],
          [['a', 'n'], '1'],
          [['a', 'list'], 'v'],
          [['a', 'deep'], 'er'],
          [['constructor'], 'x'],
          [['a', 'b', 'c'], 'v'],
          [['a', 'b'], "' or '1'='1"],
          [["a' @> '{}' or true --"], 'v'],
          [['a"}}\'::jsonb or true --'], 'v'],
          [['a', 'b'], '\0'],
          [['a\0'], 'v'],
          [['a', 'b'], '\ud800'],
          [['$1'], '$2'],
          [['%'], '%'],
        ];
        for (const miss of misses) assert.deepEqual(await findMatches(miss), [], JSON.stringify(miss));
        assert.deepEqual(await findMatches([['a', 'b'], 'v'], [['a', 'b'], 'w']), []);
      });

      it('sessions of another application are never listed', async () => {
        const one = await aSession({ userMetadata: { k: 'same' } });
        const two = await aSession({ userMetadata: { k: 'same' } });
        const metadata = [{ path: ['k'], value: 'same' }];
        const listedSessions = await store.sessions.list(one.applicationId, { limit: 10, metadata, before: two.id });
        assert.deepEqual(
          listedSessions.filter(row => row.applicationId !== one.applicationId),
          [],
        );
      });
    });

    describe('state changes of a session', () => {
      it('only one of two concurrent calls marks a session as running', async () => {
        const { id } = await aSession();
        const both = await Promise.all([store.sessions.markRunning(id, NOW), store.sessions.markRunning(id, NOW)]);
        assert.equal(both.filter(Boolean).length, 1);
        const row = await store.sessions.byId(id);
        assert.deepEqual([row?.status, row?.startedAt], ['RUNNING', NOW]);
      });

      it('a session does not start running after its end was decided', async () => {
        const { id } = await aSession();
        await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, NOW);
        assert.equal(await store.sessions.markRunning(id, NOW), undefined);
        assert.equal((await store.sessions.byId(id))?.status, 'PENDING');
      });

      it('the first of several concurrent decisions to end a session is kept', async () => {
        const { id } = await aRunningSession();
        const ends = ['released', 'expired', 'crashed', 'drained'].map(reason => ({
          status: 'ERROR' as const,
          reason,
        }));
        const rows = await Promise.all(ends.map(end => store.sessions.decideEnd(id, end, NOW)));
        const keptReasons = new Set(rows.map(row => row?.end?.reason));
        assert.equal(keptReasons.size, 1);
        const lateRow = await store.sessions.decideEnd(
          id,
          { status: 'COMPLETED', reason: 'late', detail: 'x' },
          addMs(NOW, 9),
        );
        assert.deepEqual(lateRow?.end, { status: 'ERROR', reason: [...keptReasons][0] });
        assert.deepEqual(lateRow?.updatedAt, NOW);
      });

      it('a session finishes with the decided status and reason, and finishing it again returns the same result', async () => {
        const { id, applicationId } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.setBox(id, { pid: 7 }, NOW);
        assert.deepEqual((await store.sessions.byId(id))?.box, { pid: 7 });
        assert.equal(await store.sessions.finish(id, NOW, 1), undefined);
        const end = { status: 'TIMED_OUT' as const, reason: 'expired', detail: 'its time was over' };
        await store.sessions.decideEnd(id, end, NOW);
        const endedAt = addMs(NOW, 10);
        const bytes = 2 ** 40 + 1;
        const finishedRow = await store.sessions.finish(id, endedAt, bytes);
        assert.deepEqual(finishedRow?.end, end);
        assert.deepEqual(
          [finishedRow?.status, finishedRow?.endedAt, finishedRow?.proxyBytes],
          ['TIMED_OUT', endedAt, bytes],
        );
        for (const absent of ['box', 'connectBy', 'releaseAt']) assert.ok(!(absent in (finishedRow ?? {})), absent);
        assert.deepEqual(await store.sessions.finish(id, addMs(NOW, 99), 0), finishedRow);
        assert.deepEqual(await store.sessions.get(applicationId, id), finishedRow);
      });

      it('no function changes the row of an ended session', async () => {
        const { id, applicationId, hostId } = await aRunningSession();
        await finishAs(store, id, 'COMPLETED');
        const rowBefore = await store.sessions.byId(id);
        assert.equal(await store.sessions.markRunning(id, NOW), undefined);
        assert.equal(await store.sessions.decideEnd(id, { status: 'ERROR', reason: 'late' }, NOW), undefined);
        assert.equal(await store.sessions.change(applicationId, id, { userMetadata: {} }, NOW), undefined);
        await store.sessions.setBox(id, { pid: 1 }, addMs(NOW, 1));
        await store.sessions.recordClientConnected(id, addMs(NOW, 1));
        await store.sessions.recordLastClientDisconnected(id, addMs(NOW, 1), addMs(NOW, 1));
        await store.sessions.resumeTimers(hostId, addMs(NOW, 1));
        assert.deepEqual(await store.sessions.byId(id), rowBefore);
        assert.deepEqual(await store.sessions.ofHost(hostId), []);
        assert.deepEqual(await store.sessions.due(hostId, addMs(NOW, DAY_MS), 10), []);
      });

      it('the database itself rejects forbidden state changes', async () => {
        const endedSession = await aRunningSession();
        await finishAs(store, endedSession.id, 'COMPLETED');
        const runningSession = await aRunningSession();
        const decidedSession = await aRunningSession();
        await store.sessions.decideEnd(decidedSession.id, { status: 'ERROR', reason: 'first' }, NOW);
        const forbiddenChanges: Array<[string, SessionId]> = [
          [`status = 'RUNNING', ended_at = null`, endedSession.id],
          [`status = 'ERROR', end_status = 'ERROR'`, endedSession.id],
          [`ended_at = now()`, endedSession.id],
          [`end_reason = 'other'`, endedSession.id],
          [`status = 'PENDING'`, runningSession.id],
          [`status = 'COMPLETED', ended_at = now()`, runningSession.id],
          [`status = 'WHATEVER'`, runningSession.id],
          [`end_reason = 'second'`, decidedSession.id],
          [`end_status = null, end_reason = null, end_decided_at = null`, decidedSession.id],
          [`status = 'COMPLETED', ended_at = now()`, decidedSession.id],
        ];
        for (const [change, id] of forbiddenChanges)
          await assert.rejects(
            runSql(database, `update sessions set ${change} where id = '${id}'`),
            /final|pending again|decided|check/,
          );
      });

      it('a session is updated only while it is running and before its end is decided', async () => {
        const { id, applicationId } = await aSession();
        const change = { userMetadata: { a: 'b' }, expiresAt: addMs(NOW, 2 * MINUTE_MS) };
        const changedAt = addMs(NOW, 3);
        const ask = () => store.sessions.change(applicationId, id, change, changedAt);
        assert.equal(await ask(), undefined);
        const runningRow = await store.sessions.markRunning(id, NOW);
        assert.deepEqual(await ask(), { ...runningRow, ...change, updatedAt: changedAt });
        assert.equal(await store.sessions.change((await anApplication()).id, id, change, changedAt), undefined);
        await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, NOW);
        assert.equal(await ask(), undefined);
      });

      it('the connect and release times are updated as clients connect and disconnect', async () => {
        const { id } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordClientConnected(id, addMs(NOW, 1));
        const connectedRow = await store.sessions.byId(id);
        assert.deepEqual(
          [connectedRow?.attached, connectedRow?.connectBy, connectedRow?.releaseAt],
          [true, undefined, undefined],
        );
        await store.sessions.recordLastClientDisconnected(id, addMs(NOW, 7), addMs(NOW, 2));
        const disconnectedRow = await store.sessions.byId(id);
        assert.deepEqual([disconnectedRow?.attached, disconnectedRow?.releaseAt], [false, addMs(NOW, 7)]);
        await store.sessions.recordClientConnected(id, addMs(NOW, 3));
        await store.sessions.recordLastClientDisconnected(id, undefined, addMs(NOW, 4));
        const kept = await store.sessions.byId(id);
        assert.deepEqual([kept?.attached, kept?.releaseAt], [false, undefined]);
      });

      it('a session stops waiting for its first client even if only the disconnection of that client was recorded', async () => {
        const { id } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordClientDisconnected(id, addMs(NOW, 1), 1);
        const attachedRow = await store.sessions.byId(id);
        assert.deepEqual([attachedRow?.attached, attachedRow?.connectBy], [true, undefined]);
        const otherSession = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordLastClientDisconnected(otherSession.id, addMs(NOW, 7), addMs(NOW, 2));
        const disconnectedRow = await store.sessions.byId(otherSession.id);
        assert.deepEqual(
          [disconnectedRow?.attached, disconnectedRow?.connectBy, disconnectedRow?.releaseAt],
          [false, undefined, addMs(NOW, 7)],
        );
      });
    });

    describe('due times', () => {
      it('the due sessions of a host are returned in batches, in the order in which they became due', async () => {
        const hostId = await aHost();
        const applicationId = (await anApplication()).id;
        const on = { hostId, applicationId };
        const expiringSession = await aRunningSession({ ...on, expiresAt: addMs(NOW, 30) });
        const connectDueSession = await aRunningSession({ ...on, connectBy: addMs(NOW, 20) });
        const releaseDueSession = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(releaseDueSession.id, addMs(NOW, 10), NOW);
        const decidedSession = await aRunningSession(on);
        await store.sessions.decideEnd(decidedSession.id, { status: 'COMPLETED', reason: 'released' }, addMs(NOW, 5));
        await aRunningSession(on);
        await aRunningSession({ applicationId, expiresAt: NOW });
        const due = async (atMs: number, batch = 10) =>
          (await store.sessions.due(hostId, addMs(NOW, atMs), batch)).map(row => row.id);
        assert.deepEqual(await due(0), [decidedSession.id]);
        assert.deepEqual(await due(9), [decidedSession.id]);
        assert.deepEqual(await due(10), [decidedSession.id, releaseDueSession.id]);
        assert.deepEqual(await due(30), [
          decidedSession.id,
          releaseDueSession.id,
          connectDueSession.id,
          expiringSession.id,
        ]);
        assert.deepEqual(await due(30, 2), [decidedSession.id, releaseDueSession.id]);
        await store.sessions.recordClientConnected(releaseDueSession.id, NOW);
        assert.deepEqual(await due(30), [decidedSession.id, connectDueSession.id, expiringSession.id]);
      });

      it('after a restart of the server, no connect or release deadline of its sessions is before the end of the grace period', async () => {
        const hostId = await aHost();
        const on = { hostId, applicationId: (await anApplication()).id };
        const notBefore = addMs(NOW, 30_000);
        const [soon, late] = [addMs(NOW, 1_000), addMs(NOW, 90_000)];
        const earlyConnectSession = await aRunningSession({ ...on, connectBy: soon });
        const lateConnectSession = await aRunningSession({ ...on, connectBy: late });
        const attachedSession = await aRunningSession(on);
        await store.sessions.recordClientConnected(attachedSession.id, NOW);
        const keepAliveSession = await aRunningSession({ ...on, keepAlive: true });
        await store.sessions.recordClientConnected(keepAliveSession.id, NOW);
        const earlyReleaseSession = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(earlyReleaseSession.id, soon, NOW);
        const lateReleaseSession = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(lateReleaseSession.id, late, NOW);
        const idleSession = await aRunningSession(on);
        const otherHostSession = await aRunningSession({ ...on, hostId: await aHost(), connectBy: soon });
        await store.sessions.resumeTimers(hostId, notBefore);
        const readTimers = async ({ id }: SessionRow) => {
          const row = await store.sessions.byId(id);
          return [row?.connectBy, row?.releaseAt, row?.attached];
        };
        assert.deepEqual(await readTimers(earlyConnectSession), [notBefore, undefined, false]);
        assert.deepEqual(await readTimers(lateConnectSession), [late, undefined, false]);
        assert.deepEqual(await readTimers(attachedSession), [undefined, notBefore, false]);
        assert.deepEqual(await readTimers(keepAliveSession), [undefined, undefined, false]);
        assert.deepEqual(await readTimers(earlyReleaseSession), [undefined, notBefore, false]);
        assert.deepEqual(await readTimers(lateReleaseSession), [undefined, late, false]);
        assert.deepEqual(await readTimers(idleSession), [undefined, undefined, false]);
        assert.deepEqual(await readTimers(otherHostSession), [soon, undefined, false]);
      });
    });

    describe('counting sessions', () => {
      it('the sessions of a host are counted by status, and those that have not ended are listed', async () => {
        const hostId = await aHost();
        const on = { hostId, applicationId: (await anApplication()).id };
        assert.deepEqual(await store.sessions.countByStatus(hostId), {});
        const rows = [await aSession(on), await aRunningSession(on), await aRunningSession(on)];
        await finishAs(store, (await aRunningSession(on)).id, 'ERROR');
        assert.deepEqual(await store.sessions.countByStatus(hostId), { PENDING: 1, RUNNING: 2, ERROR: 1 });
        assert.deepEqual(
          new Set((await store.sessions.ofHost(hostId)).map(row => row.id)),
          new Set(rows.map(row => row.id)),
        );
      });

      it('the browser minutes and proxy bytes of an application are summed, and the minutes include those of running sessions', async () => {
        const applicationId = (await anApplication()).id;
        assert.deepEqual(await store.sessions.usage(applicationId), { browserMinutes: 0, proxyBytes: 0 });
        const completedSession = await aSession({ applicationId });
        await store.sessions.markRunning(completedSession.id, addMs(NOW, -10 * MINUTE_MS));
        await store.sessions.decideEnd(completedSession.id, { status: 'COMPLETED', reason: 'released' }, NOW);
        await store.sessions.finish(completedSession.id, addMs(NOW, -7 * MINUTE_MS), 1000);
        const runningSession = await aSession({ applicationId });
        await store.sessions.markRunning(runningSession.id, addMs(NOW, -30_000));
        await aSession({ applicationId });
        assert.deepEqual(await store.sessions.usage(applicationId), { browserMinutes: 3.5, proxyBytes: 1000 });
      });
    });

    describe('opening a store', () => {
      it('all data is kept when the store is opened again, even several times concurrently', async () => {
        const row = await anApplication();
        if (!database.options.databaseUrl) return;
        const otherStores = await Promise.all([1, 2, 3].map(() => openStore(database.options)));
        for (const otherStore of otherStores) {
          assert.deepEqual(await otherStore.applications.byId(row.id), row);
          await otherStore.close();
        }
      });
    });

    describe('failures', () => {
      /** Sends as many requests as the pool has connections, so that each connection is used. */
      const waitUntilRecovered = (id: ApplicationId) =>
        pollUntil(STEP_TIMEOUT_MS, 'the store to answer again', async () => {
          const rows = await Promise.allSettled(Array.from({ length: 8 }, () => store.applications.byId(id)));
          return rows.every(row => row.status === 'fulfilled' && row.value?.id === id) ? true : undefined;
        });

      it('the store recovers when a backend is killed and PostgreSQL closes all other connections', async () => {
        const row = await anApplication();
        const all = backendsOf(database.postmasterPid());
        assert.ok(all[0]);
        process.kill(all[0], 'SIGKILL');
        // PostgreSQL treats the kill as a crash and closes all other connections.
        for (const pid of all) await waitUntilGone(pid);
        await waitUntilRecovered(row.id);
      });

      it('the store fails while PostgreSQL is down, reports the gap to listeners, and recovers when PostgreSQL is back', async () => {
        const row = await anApplication();
        const aKey = newKey(row.id);
        await store.keys.insert(aKey, 10);
        const receivedHashes: string[] = [];
        let gaps = 0;
        const listener = await store.listen(
          'credential_revoked',
          hash => receivedHashes.push(hash),
          () => {
            gaps += 1;
          },
        );
        const outcomes: unknown[] = [];
        const pendingCrash = database.crash();
        await pollUntil(
          STEP_TIMEOUT_MS,
          'a query to fail',
          async () => {
            const outcome = await store.applications.byId(row.id).catch((error: unknown) => error);
            outcomes.push(outcome);
            return outcome instanceof Error ? true : undefined;
          },
          1,
        );
        assert.ok(isFault(outcomes.at(-1), 'database_unreachable'), String(outcomes.at(-1)));
        await pendingCrash;
        await waitUntilRecovered(row.id);
        await pollUntil(STEP_TIMEOUT_MS, 'the gap to be reported', () => (gaps > 0 ? true : undefined));
        await store.keys.revoke(row.id, aKey.id, NOW);
        await pollUntil(STEP_TIMEOUT_MS, 'notices to arrive again', () =>
          receivedHashes.length > 0 ? true : undefined,
        );
        assert.deepEqual(receivedHashes, [aKey.hash.toString('hex')]);
        await listener.close();
      });

      it('the store fails within its time limit when PostgreSQL hangs', async () => {
        const row = await anApplication();
        const pids = [database.postmasterPid(), ...backendsOf(database.postmasterPid())];
        for (const pid of pids) signalIfRunning(pid, 'SIGSTOP');
        try {
          await assert.rejects(store.ping(), error => isFault(error, 'database_unreachable'));
        } finally {
          for (const pid of pids) signalIfRunning(pid, 'SIGCONT');
        }
        await waitUntilRecovered(row.id);
        await store.ping();
      });
    });
  });
}

describe('database of an operator', () => {
  const scope = new Scope();
  let server: ForeignServer;
  let dataDir: string;
  before(async () => {
    server = await startForeignServer(scope);
    dataDir = makeTemporaryFolder(scope, 'unused');
  });
  after(() => scope.close());

  const open = (databaseUrl: Secret) => openStore({ databaseUrl, dataDir, log: silentLog, clock: systemClock });
  const assertRefused = (databaseUrl: Secret, code: string, text: RegExp) =>
    assert.rejects(open(databaseUrl), error => isFault(error, code) && text.test(error.message));
  const urlWith = (change: (url: URL) => void): Secret => {
    const url = new URL(server.url.reveal());
    change(url);
    return new Secret(url.href);
  };

  it('a query may wait for a free database connection longer than the timeout for opening a new connection', async () => {
    const { db, close } = openDatabase({ url: server.url }, silentLog, { poolMax: 1 });
    const sleepQuery = sql`select pg_sleep(6)`.execute(db);
    const { rows } = await sql<{ one: number }>`select 1 as one`.execute(db);
    assert.equal(rows[0]?.one, 1);
    await sleepQuery;
    await close();
  });

  it('a wrong password is reported at once and not shown', async () => {
    const url = urlWith(it => {
      it.password = 'wrong-secret';
    });
    const error: unknown = await open(url).catch((caught: unknown) => caught);
    assert.ok(isFault(error, 'database_unreachable'));
    assert.match(error.message, /password authentication failed/);
    assert.doesNotMatch(JSON.stringify(error) + error.stack, /wrong-secret/);
  });

  it('the wait for an unreachable database server ends when the signal is aborted', async () => {
    const url = urlWith(it => {
      it.port = '1';
    });
    const controller = new AbortController();
    const pendingOpen = openStore({
      databaseUrl: url,
      dataDir,
      log: silentLog,
      clock: systemClock,
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(new Error('enough')), 300);
    await assert.rejects(pendingOpen, /enough|aborted/);
  });

  it('a wrong encoding of the database is reported', async () => {
    await query(server, `create database latin encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`);
    await assertRefused(
      urlWith(it => {
        it.pathname = '/latin';
      }),
      'database_unusable',
      /SQL_ASCII/,
    );
  });

  it('a database server that is too old is reported', async () => {
    await query(server, 'create database ancient');
    const url = urlWith(it => {
      it.pathname = '/ancient';
    });
    // No PostgreSQL 14 is available, so this server is made to report version 14.11.
    await query(
      { url },
      `create function public.current_setting(text) returns text language sql as $$
      select case $1 when 'server_version_num' then '140011' when 'server_version' then '14.11' else 'UTF8' end $$`,
    );
    url.reveal();
    const old = new Secret(`${url.reveal()}?options=${encodeURIComponent('-c search_path=public,pg_catalog')}`);
    await assertRefused(old, 'database_too_old', /PostgreSQL 14\.11.*15/);
  });

  it('a database of a newer version of Berth is refused', async () => {
    await query(server, 'create database newer');
    const url = urlWith(it => {
      it.pathname = '/newer';
    });
    await (await open(url)).close();
    await query({ url }, `insert into berth_migrations values ('9999-later', '2030-01-01')`);
    await assertRefused(url, 'database_unusable', /newer version/);
  });

  it('a missing permission to create tables is reported', async () => {
    await query(server, 'create database locked');
    await query(server, `create role weak login password 'weak'`);
    const url = urlWith(it => {
      it.pathname = '/locked';
      it.username = 'weak';
      it.password = 'weak';
    });
    await assertRefused(url, 'database_unusable', /permission denied/);
  });

  it('a new database is migrated once when several stores open it concurrently', async () => {
    await query(server, 'create database rush');
    const url = urlWith(it => {
      it.pathname = '/rush';
    });
    const stores = await Promise.all([1, 2, 3, 4, 5].map(() => open(url)));
    for (const store of stores) await store.close();
    const rows = await query({ url }, 'select name from berth_migrations');
    assert.deepEqual(
      rows,
      Object.keys(migrations).map(name => ({ name })),
    );
  });
});

async function query(server: { url: Secret }, text: string): Promise<unknown[]> {
  return runSql({ login: { connectionString: server.url.reveal() } }, text);
}

async function runSql(database: Pick<TestDatabase, 'login'>, text: string): Promise<unknown[]> {
  const client = new pg.Client(database.login);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const newApplication = (billingAccountId: AccountId, name: string): ApplicationRow => {
  const id = newId<ApplicationId>(NOW);
  return { id, name, slug: `s-${id}`, billingAccountId, revision: 1, createdAt: NOW, updatedAt: NOW };
};

const credentialFields = () => ({
  name: 'nightly',
  prefix: 'bak_x7Qk',
  hash: createHash('sha256').update(randomBytes(32)).digest(),
  scopes: ['browsers:read', 'browsers:write'],
  cidrAllow: [],
  createdAt: NOW,
});

const newKey = (applicationId: ApplicationId): KeyRow => ({
  ...credentialFields(),
  id: newId<KeyId>(NOW),
  applicationId,
  revision: 1,
  grants: [],
});

const newToken = (accountId: AccountId): TokenRow => ({
  ...credentialFields(),
  id: newId<TokenId>(NOW),
  accountId,
  kind: 'personal',
});

const newSession = (given: Partial<NewSession> & Pick<NewSession, 'applicationId' | 'hostId'>): NewSession => ({
  id: newId<SessionId>(NOW),
  region: 'local',
  keepAlive: false,
  userMetadata: {},
  settings: {},
  createdAt: NOW,
  expiresAt: addMs(NOW, 5 * MINUTE_MS),
  ...given,
});

const idAt = (ms: number): SessionId => newId<SessionId>(addMs(NOW, ms));

async function finishAs(store: Store, id: SessionId, status: 'COMPLETED' | 'ERROR'): Promise<void> {
  await store.sessions.decideEnd(id, { status, reason: 'test' }, NOW);
  assert.equal((await store.sessions.finish(id, NOW, 0))?.status, status);
}

async function pagesOf<Id extends string>(
  next: (before: { before?: Id }) => Promise<Array<{ readonly id: Id }>>,
): Promise<Id[][]> {
  const pages: Id[][] = [];
  for (let last: Id | undefined; pages.length < 20; last = pages.at(-1)?.at(-1)) {
    const page = await next(last === undefined ? {} : { before: last });
    if (page.length === 0) return pages;
    pages.push(page.map(row => row.id));
  }
  return assert.fail('the last page of the list has a cursor');
}
