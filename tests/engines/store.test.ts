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
  STEP_MS,
  signalIfThere,
  startForeignServer,
  temporaryFolder,
  waitUntilGone,
} from './store-fixtures.ts';

interface Place {
  readonly options: StoreOptions;
  postmaster(): number;
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
  const dataDir = temporaryFolder(scope, 'store');
  const running = () => findPostmaster(dataDir) ?? assert.fail('PostgreSQL is not running');
  return {
    options: { dataDir, log: silentLog, clock },
    postmaster: () => running().pid,
    crash: async () => void process.kill(running().pid, 'SIGKILL'),
    get login() {
      return socketLogin(running());
    },
  };
});

describeStore('DATABASE_URL', async scope => {
  const server = await startForeignServer(scope);
  return {
    options: { databaseUrl: server.url, dataDir: temporaryFolder(scope, 'unused'), log: silentLog, clock },
    postmaster: () => server.pid,
    crash: () => server.crash(),
    login: { connectionString: server.url.reveal() },
  };
});

function describeStore(name: string, prepare: (scope: Scope) => Promise<Place>): void {
  describe(`store on ${name}`, () => {
    const scope = new Scope();
    let place: Place;
    let store: Store;

    before(async () => {
      place = await prepare(scope);
      store = scope.own(await openStore(place.options));
    });
    after(() => scope.close());

    const anAccount = async (): Promise<AccountRow> => {
      const account: AccountRow = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
      await store.accounts.insert(account);
      return account;
    };
    const anApplication = async (account?: AccountRow, name = 'Shop'): Promise<ApplicationRow> => {
      const owner = account ?? (await anAccount());
      const row = application(owner.id, name);
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
      it('the first account is returned with its time to the millisecond', async () => {
        const mine = await anAccount();
        const first = await store.accounts.first();
        assert.ok(first);
        assert.equal(first.createdAt.toISOString(), '2026-11-20T10:00:00.123Z');
        assert.ok(first.id <= mine.id);
      });
    });

    describe('applications', () => {
      it('an application is inserted with the account as its owner, and is found by id, slug and name', async () => {
        const account = await anAccount();
        const row = application(account.id, `Shop ${randomBytes(4).toString('hex')}`);
        assert.equal(await store.applications.insert(row, account.id, 50), 'inserted');
        assert.deepEqual(await store.applications.get(row.id, account.id), { ...row, role: 'owner' });
        assert.deepEqual(await store.applications.byId(row.id), row);
        for (const name of [row.id, row.slug, row.name]) assert.deepEqual(await store.applications.find(name), [row]);
        assert.deepEqual(await store.applications.find("' or true --"), []);
        assert.deepEqual(await store.applications.find('\0'), []);
      });

      it('all applications with a name are found, or only the application whose slug equals the name', async () => {
        const account = await anAccount();
        const name = `twin-${randomBytes(4).toString('hex')}`;
        const [one, two] = [await anApplication(account, name), await anApplication(account, name)];
        assert.deepEqual(new Set((await store.applications.find(name)).map(row => row.id)), new Set([one.id, two.id]));
        const three = { ...application(account.id, 'other'), id: newId<ApplicationId>(addMs(NOW, -1)), slug: name };
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

      it('an application with an existing slug is refused, and no row of it remains', async () => {
        const account = await anAccount();
        const first = await anApplication(account);
        const second = { ...application(account.id, 'Other'), slug: first.slug };
        assert.equal(await store.applications.insert(second, account.id, 50), 'slug_taken');
        assert.equal(await store.applications.byId(second.id), undefined);
        assert.equal((await store.applications.list(account.id, { limit: 10 })).length, 1);
      });

      it('the limit of applications is enforced for concurrent inserts', async () => {
        const account = await anAccount();
        const arrive = () => store.applications.insert(application(account.id, 'Rush'), account.id, 3);
        const responses = await Promise.all(Array.from({ length: 20 }, arrive));
        assert.equal(responses.filter(response => response === 'inserted').length, 3);
        assert.equal(responses.filter(response => response === 'limit_reached').length, 17);
      });

      it('applications are listed newest first in pages without gaps or repetitions', async () => {
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

      it('an application is renamed once, and only if the revision is current', async () => {
        const row = await anApplication();
        const later = addMs(NOW, 1);
        const renamed = { ...row, name: 'New', revision: 2, updatedAt: later };
        const both = await Promise.all([1, 2].map(() => store.applications.rename(row.id, 1, 'New', later)));
        assert.deepEqual(both.filter(Boolean), [renamed]);
        assert.equal(await store.applications.rename(row.id, 1, 'Stale', later), undefined);
        assert.deepEqual(await store.applications.byId(row.id), renamed);
      });
    });

    describe('keys', () => {
      it('the inserted row of a key is returned, without absent fields', async () => {
        const row = key((await anApplication()).id);
        assert.equal(await store.keys.insert(row, 10), 'inserted');
        assert.deepEqual(await store.keys.byHash(row.hash), row);
        assert.deepEqual(await store.keys.get(row.applicationId, row.id), row);
        assert.equal(await store.keys.byHash(randomBytes(32)), undefined);
        const full = {
          ...key(row.applicationId),
          cidrAllow: ['10.0.0.0/8', 'a"b,c{}\\'],
          expiresAt: addMs(NOW, DAY_MS),
        };
        assert.equal(await store.keys.insert(full, 10), 'inserted');
        assert.deepEqual(await store.keys.byHash(full.hash), full);
      });

      it('keys of another application are not returned, updated or revoked', async () => {
        const row = key((await anApplication()).id);
        await store.keys.insert(row, 10);
        const other = (await anApplication()).id;
        assert.equal(await store.keys.get(other, row.id), undefined);
        assert.equal(await store.keys.change(other, row.id, 1, { name: 'mine now' }), undefined);
        assert.equal(await store.keys.revoke(other, row.id, NOW), false);
        assert.deepEqual(await store.keys.list(other, NOW, { limit: 10 }), []);
      });

      it('only valid keys count towards the limit, even for concurrent inserts', async () => {
        const { id } = await anApplication();
        await store.keys.insert({ ...key(id), expiresAt: addMs(NOW, -1) }, 2);
        await store.keys.insert({ ...key(id), revokedAt: addMs(NOW, -1) }, 2);
        const responses = await Promise.all(Array.from({ length: 12 }, () => store.keys.insert(key(id), 2)));
        assert.equal(responses.filter(response => response === 'inserted').length, 2);
      });

      it('a key is updated only if the revision is current', async () => {
        const row = key((await anApplication()).id);
        await store.keys.insert(row, 10);
        const expiresAt = addMs(NOW, DAY_MS);
        const changed = { ...row, name: 'day', cidrAllow: ['::1/128'], expiresAt, revision: 2 };
        const change = { name: 'day', cidrAllow: ['::1/128'], expiresAt };
        assert.deepEqual(await store.keys.change(row.applicationId, row.id, 1, change), changed);
        assert.equal(await store.keys.change(row.applicationId, row.id, 1, { name: 'stale' }), undefined);
        assert.deepEqual(await store.keys.change(row.applicationId, row.id, 2, {}), { ...changed, revision: 3 });
      });

      it('a key is revoked once, and a revoked key cannot be updated', async () => {
        const row = key((await anApplication()).id);
        await store.keys.insert(row, 10);
        const revoke = () => store.keys.revoke(row.applicationId, row.id, NOW);
        const responses = await Promise.all([revoke(), revoke(), revoke()]);
        assert.deepEqual(responses.sort(), [false, false, true]);
        assert.deepEqual((await store.keys.byHash(row.hash))?.revokedAt, NOW);
        assert.equal(await store.keys.change(row.applicationId, row.id, 2, { name: 'back' }), undefined);
      });

      it('an expired key is not revoked', async () => {
        const row = { ...key((await anApplication()).id), expiresAt: NOW };
        await store.keys.insert(row, 10);
        assert.equal(await store.keys.revoke(row.applicationId, row.id, NOW), false);
      });

      it('keys are listed newest first, and ended keys are listed for ninety days', async () => {
        const { id } = await anApplication();
        const ninety = 90 * DAY_MS;
        const alive = key(id);
        const fresh = { ...key(id), revokedAt: addMs(NOW, 1 - ninety) };
        const old = { ...key(id), revokedAt: addMs(NOW, -ninety), expiresAt: addMs(NOW, DAY_MS) };
        const expired = { ...key(id), expiresAt: addMs(NOW, -ninety - 1) };
        for (const row of [alive, fresh, old, expired]) await store.keys.insert(row, 10);
        const listed = await store.keys.list(id, NOW, { limit: 10 });
        assert.deepEqual(
          listed.map(row => row.id),
          [fresh.id, alive.id].sort().reverse(),
        );
        const [first] = await store.keys.list(id, NOW, { limit: 1 });
        assert.ok(first);
        const rest = await store.keys.list(id, NOW, { limit: 10, before: first.id });
        assert.deepEqual(
          rest.map(row => row.id),
          listed.slice(1).map(row => row.id),
        );
      });

      it('the latest use of a key is kept even if the writes arrive out of order', async () => {
        const row = key((await anApplication()).id);
        await store.keys.insert(row, 10);
        await store.keys.touch(row.id, addMs(NOW, 2), '10.0.0.2');
        await store.keys.touch(row.id, addMs(NOW, 1), '10.0.0.1');
        const used = await store.keys.byHash(row.hash);
        assert.deepEqual([used?.lastUsedAt, used?.lastUsedIp], [addMs(NOW, 2), '10.0.0.2']);
      });
    });

    describe('tokens', () => {
      it('the inserted row of a token is returned', async () => {
        const account = await anAccount();
        const open = token(account.id);
        const narrow = { ...token(account.id), applicationIds: [newId<ApplicationId>(NOW), newId<ApplicationId>(NOW)] };
        for (const row of [open, narrow]) {
          assert.equal(await store.tokens.insert(row, 10), 'inserted');
          assert.deepEqual(await store.tokens.byHash(row.hash), row);
          assert.deepEqual(await store.tokens.get(account.id, row.id), row);
        }
        assert.deepEqual((await store.tokens.list(account.id, NOW, { limit: 10 })).length, 2);
        assert.equal(await store.tokens.get((await anAccount()).id, open.id), undefined);
      });

      it('the limit of tokens is enforced for concurrent inserts', async () => {
        const { id } = await anAccount();
        const responses = await Promise.all(Array.from({ length: 12 }, () => store.tokens.insert(token(id), 2)));
        assert.equal(responses.filter(response => response === 'limit_reached').length, 10);
      });

      it('only tokens of the given account are revoked, and only once', async () => {
        const row = token((await anAccount()).id);
        await store.tokens.insert(row, 10);
        assert.equal(await store.tokens.revoke((await anAccount()).id, row.id, NOW), false);
        assert.equal(await store.tokens.revoke(row.accountId, row.id, NOW), true);
        assert.equal(await store.tokens.revoke(row.accountId, row.id, NOW), false);
        assert.equal(await store.tokens.touch(row.id, NOW, '::1'), true);
        assert.equal(await store.tokens.touch(row.id, NOW, '::1'), false);
        const after = { ...row, revokedAt: NOW, lastUsedAt: NOW, lastUsedIp: '::1' };
        assert.deepEqual(await store.tokens.byHash(row.hash), after);
      });
    });

    describe('notices', () => {
      it('every open listener is notified of a revoked key and token', async () => {
        const heard: string[] = [];
        const other: string[] = [];
        const listener = await store.listen('credential_revoked', hash => heard.push(hash), assert.fail);
        const second = await store.listen('credential_revoked', hash => other.push(hash), assert.fail);
        const mine = key((await anApplication()).id);
        const yours = token((await anAccount()).id);
        await store.keys.insert(mine, 10);
        await store.tokens.insert(yours, 10);
        await store.keys.revoke(mine.applicationId, mine.id, NOW);
        await pollUntil(STEP_MS, 'the notices', () => (heard.length === 1 && other.length === 1 ? true : undefined));
        await second.close();
        await store.tokens.revoke(yours.accountId, yours.id, NOW);
        await pollUntil(STEP_MS, 'the second notice', () => (heard.length === 2 ? true : undefined));
        assert.deepEqual(heard, [mine.hash.toString('hex'), yours.hash.toString('hex')]);
        assert.deepEqual(other, heard.slice(0, 1));
        await listener.close();
      });

      it('no listener is notified when no credential was revoked', async () => {
        const heard: string[] = [];
        const listener = await store.listen('credential_revoked', hash => heard.push(hash), assert.fail);
        const [gone, real] = [key((await anApplication()).id), key((await anApplication()).id)];
        await store.keys.insert(real, 10);
        await store.keys.revoke(gone.applicationId, gone.id, NOW);
        await store.keys.revoke(real.applicationId, real.id, NOW);
        await pollUntil(STEP_MS, 'the notice', () => (heard.length > 0 ? true : undefined));
        assert.deepEqual(heard, [real.hash.toString('hex')]);
        await listener.close();
      });
    });

    describe('placing a session', () => {
      it('placing a session returns the whole row', async () => {
        const applicationId = (await anApplication()).id;
        const aKey = key(applicationId);
        await store.keys.insert(aKey, 10);
        const asked = newSession({
          applicationId,
          hostId: await aHost(),
          keyId: aKey.id,
          keepAlive: true,
          userMetadata: { snake_case: { camelCase: [1, null, { a_b: 'ü💥' }] }, ['__proto__']: { polluted: 'no' } },
          settings: { viewport: { width: 1 } },
          connectBy: addMs(NOW, MINUTE_MS),
        });
        const expected: SessionRow = {
          ...asked,
          status: 'PENDING',
          proxyBytes: 0,
          egressBytes: 0,
          updatedAt: NOW,
          attached: false,
        };
        assert.deepEqual(await store.sessions.place(asked), { placed: expected });
        assert.deepEqual(await store.sessions.get(applicationId, asked.id), expected);
        assert.deepEqual(await store.sessions.byId(asked.id), expected);
        assert.equal(await store.sessions.get((await anApplication()).id, asked.id), undefined);
      });

      it('fifty concurrent sessions fill exactly ten slots, and the slot of an ended session is reused', async () => {
        const hostId = await aHost(10);
        const applicationId = (await anApplication()).id;
        const arrive = () => store.sessions.place(newSession({ applicationId, hostId }));
        const responses = await Promise.all(Array.from({ length: 50 }, arrive));
        const placed = responses.flatMap(response => ('placed' in response ? [response.placed] : []));
        assert.equal(placed.length, 10);
        for (const response of responses)
          if ('full' in response) assert.deepEqual(response, { full: { slots: 10, used: 10 } });
        const [first] = placed;
        assert.ok(first);
        await finishAs(store, first.id, 'COMPLETED');
        assert.ok('placed' in (await arrive()));
        assert.ok('full' in (await arrive()));
      });

      it('the number of slots that was announced last applies', async () => {
        const hostId = await aHost(0);
        const applicationId = (await anApplication()).id;
        const arrive = () => store.sessions.place(newSession({ applicationId, hostId }));
        assert.deepEqual(await arrive(), { full: { slots: 0, used: 0 } });
        await store.hosts.announce({ id: hostId, region: 'other', slots: 1, startedAt: addMs(NOW, 1) });
        assert.ok('placed' in (await arrive()));
      });
    });

    describe('listing sessions', () => {
      it('sessions are listed newest first, and the position in the list is kept while new sessions are placed', async () => {
        const applicationId = (await anApplication()).id;
        const hostId = await aHost();
        const made: SessionId[] = [];
        for (let at = 0; at < 5; at += 1) made.push((await aSession({ applicationId, hostId, id: idAt(at) })).id);
        let arrived = 100;
        const pages = await pagesOf<SessionId>(async before => {
          const page = await store.sessions.list(applicationId, { limit: 2, ...before });
          await aSession({ applicationId, hostId, id: idAt(arrived++) });
          return page;
        });
        assert.deepEqual(pages.flat(), made.reverse());
      });

      it('sessions can be filtered by status', async () => {
        const applicationId = (await anApplication()).id;
        const running = await aRunningSession({ applicationId });
        const pending = await aSession({ applicationId });
        const ids = async (statuses: SessionRow['status'][]) =>
          new Set((await store.sessions.list(applicationId, { limit: 10, statuses })).map(row => row.id));
        assert.deepEqual(await ids(['RUNNING']), new Set([running.id]));
        assert.deepEqual(await ids(['RUNNING', 'PENDING']), new Set([running.id, pending.id]));
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
        const matches = async (...terms: Array<[string[], string]>) => {
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
        for (const hit of hits) assert.deepEqual(await matches(hit), [id], hit.join());
        assert.deepEqual(await matches(...hits), [id]);
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
        for (const miss of misses) assert.deepEqual(await matches(miss), [], JSON.stringify(miss));
        assert.deepEqual(await matches([['a', 'b'], 'v'], [['a', 'b'], 'w']), []);
      });

      it('sessions of another application are never listed', async () => {
        const one = await aSession({ userMetadata: { k: 'same' } });
        const two = await aSession({ userMetadata: { k: 'same' } });
        const metadata = [{ path: ['k'], value: 'same' }];
        const listed = await store.sessions.list(one.applicationId, { limit: 10, metadata, before: two.id });
        assert.deepEqual(
          listed.filter(row => row.applicationId !== one.applicationId),
          [],
        );
      });
    });

    describe('state changes of a session', () => {
      it('a session starts running once', async () => {
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
        const stood = new Set(rows.map(row => row?.end?.reason));
        assert.equal(stood.size, 1);
        const late = await store.sessions.decideEnd(
          id,
          { status: 'COMPLETED', reason: 'late', detail: 'x' },
          addMs(NOW, 9),
        );
        assert.deepEqual(late?.end, { status: 'ERROR', reason: [...stood][0] });
        assert.deepEqual(late?.updatedAt, NOW);
      });

      it('a session is finished once, as decided, and a repeated call returns the same result', async () => {
        const { id, applicationId } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.setBox(id, { pid: 7 }, NOW);
        assert.deepEqual((await store.sessions.byId(id))?.box, { pid: 7 });
        assert.equal(await store.sessions.finish(id, NOW, 1), undefined);
        const end = { status: 'TIMED_OUT' as const, reason: 'expired', detail: 'its time was over' };
        await store.sessions.decideEnd(id, end, NOW);
        const endedAt = addMs(NOW, 10);
        const bytes = 2 ** 40 + 1;
        const finished = await store.sessions.finish(id, endedAt, bytes);
        assert.deepEqual(finished?.end, end);
        assert.deepEqual([finished?.status, finished?.endedAt, finished?.proxyBytes], ['TIMED_OUT', endedAt, bytes]);
        for (const absent of ['box', 'connectBy', 'releaseAt']) assert.ok(!(absent in (finished ?? {})), absent);
        assert.deepEqual(await store.sessions.finish(id, addMs(NOW, 99), 0), finished);
        assert.deepEqual(await store.sessions.get(applicationId, id), finished);
      });

      it('no function changes the row of an ended session', async () => {
        const { id, applicationId, hostId } = await aRunningSession();
        await finishAs(store, id, 'COMPLETED');
        const before = await store.sessions.byId(id);
        assert.equal(await store.sessions.markRunning(id, NOW), undefined);
        assert.equal(await store.sessions.decideEnd(id, { status: 'ERROR', reason: 'late' }, NOW), undefined);
        assert.equal(await store.sessions.change(applicationId, id, { userMetadata: {} }, NOW), undefined);
        await store.sessions.setBox(id, { pid: 1 }, addMs(NOW, 1));
        await store.sessions.recordClientConnected(id, addMs(NOW, 1));
        await store.sessions.recordLastClientDisconnected(id, addMs(NOW, 1), addMs(NOW, 1));
        await store.sessions.resumeTimers(hostId, addMs(NOW, 1));
        assert.deepEqual(await store.sessions.byId(id), before);
        assert.deepEqual(await store.sessions.ofHost(hostId), []);
        assert.deepEqual(await store.sessions.due(hostId, addMs(NOW, DAY_MS), 10), []);
      });

      it('the database itself rejects forbidden state changes', async () => {
        const ended = await aRunningSession();
        await finishAs(store, ended.id, 'COMPLETED');
        const running = await aRunningSession();
        const decided = await aRunningSession();
        await store.sessions.decideEnd(decided.id, { status: 'ERROR', reason: 'first' }, NOW);
        const forbidden: Array<[string, SessionId]> = [
          [`status = 'RUNNING', ended_at = null`, ended.id],
          [`status = 'ERROR', end_status = 'ERROR'`, ended.id],
          [`ended_at = now()`, ended.id],
          [`end_reason = 'other'`, ended.id],
          [`status = 'PENDING'`, running.id],
          [`status = 'COMPLETED', ended_at = now()`, running.id],
          [`status = 'WHATEVER'`, running.id],
          [`end_reason = 'second'`, decided.id],
          [`end_status = null, end_reason = null, end_decided_at = null`, decided.id],
          [`status = 'COMPLETED', ended_at = now()`, decided.id],
        ];
        for (const [change, id] of forbidden)
          await assert.rejects(
            byHand(place, `update sessions set ${change} where id = '${id}'`),
            /final|pending again|decided|check/,
          );
      });

      it('a session is updated only while it is running and before its end is decided', async () => {
        const { id, applicationId } = await aSession();
        const change = { userMetadata: { a: 'b' }, expiresAt: addMs(NOW, 2 * MINUTE_MS) };
        const later = addMs(NOW, 3);
        const ask = () => store.sessions.change(applicationId, id, change, later);
        assert.equal(await ask(), undefined);
        const running = await store.sessions.markRunning(id, NOW);
        assert.deepEqual(await ask(), { ...running, ...change, updatedAt: later });
        assert.equal(await store.sessions.change((await anApplication()).id, id, change, later), undefined);
        await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, NOW);
        assert.equal(await ask(), undefined);
      });

      it('the connect and release times are updated as clients connect and disconnect', async () => {
        const { id } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordClientConnected(id, addMs(NOW, 1));
        const came = await store.sessions.byId(id);
        assert.deepEqual([came?.attached, came?.connectBy, came?.releaseAt], [true, undefined, undefined]);
        await store.sessions.recordLastClientDisconnected(id, addMs(NOW, 7), addMs(NOW, 2));
        const gone = await store.sessions.byId(id);
        assert.deepEqual([gone?.attached, gone?.releaseAt], [false, addMs(NOW, 7)]);
        await store.sessions.recordClientConnected(id, addMs(NOW, 3));
        await store.sessions.recordLastClientDisconnected(id, undefined, addMs(NOW, 4));
        const kept = await store.sessions.byId(id);
        assert.deepEqual([kept?.attached, kept?.releaseAt], [false, undefined]);
      });

      it('a session no longer waits for a first client if only the disconnection of this client could be written', async () => {
        const { id } = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordClientDisconnected(id, addMs(NOW, 1), 1);
        const attached = await store.sessions.byId(id);
        assert.deepEqual([attached?.attached, attached?.connectBy], [true, undefined]);
        const other = await aRunningSession({ connectBy: addMs(NOW, 5) });
        await store.sessions.recordLastClientDisconnected(other.id, addMs(NOW, 7), addMs(NOW, 2));
        const gone = await store.sessions.byId(other.id);
        assert.deepEqual([gone?.attached, gone?.connectBy, gone?.releaseAt], [false, undefined, addMs(NOW, 7)]);
      });
    });

    describe('due times', () => {
      it('the due sessions of this host are returned, oldest first, in batches', async () => {
        const hostId = await aHost();
        const applicationId = (await anApplication()).id;
        const on = { hostId, applicationId };
        const expires = await aRunningSession({ ...on, expiresAt: addMs(NOW, 30) });
        const connect = await aRunningSession({ ...on, connectBy: addMs(NOW, 20) });
        const release = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(release.id, addMs(NOW, 10), NOW);
        const decided = await aRunningSession(on);
        await store.sessions.decideEnd(decided.id, { status: 'COMPLETED', reason: 'released' }, addMs(NOW, 5));
        await aRunningSession(on);
        await aRunningSession({ applicationId, expiresAt: NOW });
        const due = async (atMs: number, batch = 10) =>
          (await store.sessions.due(hostId, addMs(NOW, atMs), batch)).map(row => row.id);
        assert.deepEqual(await due(0), [decided.id]);
        assert.deepEqual(await due(9), [decided.id]);
        assert.deepEqual(await due(10), [decided.id, release.id]);
        assert.deepEqual(await due(30), [decided.id, release.id, connect.id, expires.id]);
        assert.deepEqual(await due(30, 2), [decided.id, release.id]);
        await store.sessions.recordClientConnected(release.id, NOW);
        assert.deepEqual(await due(30), [decided.id, connect.id, expires.id]);
      });

      it('the connect and release timers are restarted after a restart of the server', async () => {
        const hostId = await aHost();
        const on = { hostId, applicationId: (await anApplication()).id };
        const notBefore = addMs(NOW, 30_000);
        const [soon, late] = [addMs(NOW, 1_000), addMs(NOW, 90_000)];
        const waiting = await aRunningSession({ ...on, connectBy: soon });
        const patient = await aRunningSession({ ...on, connectBy: late });
        const attached = await aRunningSession(on);
        await store.sessions.recordClientConnected(attached.id, NOW);
        const kept = await aRunningSession({ ...on, keepAlive: true });
        await store.sessions.recordClientConnected(kept.id, NOW);
        const leaving = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(leaving.id, soon, NOW);
        const longLeaving = await aRunningSession(on);
        await store.sessions.recordLastClientDisconnected(longLeaving.id, late, NOW);
        const idle = await aRunningSession(on);
        const elsewhere = await aRunningSession({ ...on, hostId: await aHost(), connectBy: soon });
        await store.sessions.resumeTimers(hostId, notBefore);
        const timers = async ({ id }: SessionRow) => {
          const row = await store.sessions.byId(id);
          return [row?.connectBy, row?.releaseAt, row?.attached];
        };
        assert.deepEqual(await timers(waiting), [notBefore, undefined, false]);
        assert.deepEqual(await timers(patient), [late, undefined, false]);
        assert.deepEqual(await timers(attached), [undefined, notBefore, false]);
        assert.deepEqual(await timers(kept), [undefined, undefined, false]);
        assert.deepEqual(await timers(leaving), [undefined, notBefore, false]);
        assert.deepEqual(await timers(longLeaving), [undefined, late, false]);
        assert.deepEqual(await timers(idle), [undefined, undefined, false]);
        assert.deepEqual(await timers(elsewhere), [soon, undefined, false]);
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

      it('the minutes and bytes of an application are summed, including those of running sessions', async () => {
        const applicationId = (await anApplication()).id;
        assert.deepEqual(await store.sessions.usage(applicationId), { browserMinutes: 0, proxyBytes: 0 });
        const done = await aSession({ applicationId });
        await store.sessions.markRunning(done.id, addMs(NOW, -10 * MINUTE_MS));
        await store.sessions.decideEnd(done.id, { status: 'COMPLETED', reason: 'released' }, NOW);
        await store.sessions.finish(done.id, addMs(NOW, -7 * MINUTE_MS), 1000);
        const running = await aSession({ applicationId });
        await store.sessions.markRunning(running.id, addMs(NOW, -30_000));
        await aSession({ applicationId });
        assert.deepEqual(await store.sessions.usage(applicationId), { browserMinutes: 3.5, proxyBytes: 1000 });
      });
    });

    describe('opening a store', () => {
      it('all data is kept when the store is opened again, even several times concurrently', async () => {
        const row = await anApplication();
        if (!place.options.databaseUrl) return;
        const others = await Promise.all([1, 2, 3].map(() => openStore(place.options)));
        for (const other of others) {
          assert.deepEqual(await other.applications.byId(row.id), row);
          await other.close();
        }
      });
    });

    describe('failures', () => {
      /** Sends as many requests as the pool has connections, so that each connection is used. */
      const recovered = (id: ApplicationId) =>
        pollUntil(STEP_MS, 'the store to answer again', async () => {
          const rows = await Promise.allSettled(Array.from({ length: 8 }, () => store.applications.byId(id)));
          return rows.every(row => row.status === 'fulfilled' && row.value?.id === id) ? true : undefined;
        });

      it('the store recovers when a backend is killed and PostgreSQL closes all other connections', async () => {
        const row = await anApplication();
        const all = backendsOf(place.postmaster());
        assert.ok(all[0]);
        process.kill(all[0], 'SIGKILL');
        // PostgreSQL treats this as a crash and ends all other connections.
        for (const pid of all) await waitUntilGone(pid);
        await recovered(row.id);
      });

      it('the store fails while PostgreSQL is down, reports the gap to listeners, and recovers when PostgreSQL is back', async () => {
        const row = await anApplication();
        const aKey = key(row.id);
        await store.keys.insert(aKey, 10);
        const heard: string[] = [];
        let gaps = 0;
        const listener = await store.listen(
          'credential_revoked',
          hash => heard.push(hash),
          () => {
            gaps += 1;
          },
        );
        const outcomes: unknown[] = [];
        const crashed = place.crash();
        await pollUntil(
          STEP_MS,
          'a query to fail',
          async () => {
            const outcome = await store.applications.byId(row.id).catch((error: unknown) => error);
            outcomes.push(outcome);
            return outcome instanceof Error ? true : undefined;
          },
          1,
        );
        assert.ok(isFault(outcomes.at(-1), 'database_unreachable'), String(outcomes.at(-1)));
        await crashed;
        await recovered(row.id);
        await pollUntil(STEP_MS, 'the gap to be reported', () => (gaps > 0 ? true : undefined));
        await store.keys.revoke(row.id, aKey.id, NOW);
        await pollUntil(STEP_MS, 'notices to arrive again', () => (heard.length > 0 ? true : undefined));
        assert.deepEqual(heard, [aKey.hash.toString('hex')]);
        await listener.close();
      });

      it('the store fails within its time limit when PostgreSQL hangs', async () => {
        const row = await anApplication();
        const pids = [place.postmaster(), ...backendsOf(place.postmaster())];
        for (const pid of pids) signalIfThere(pid, 'SIGSTOP');
        try {
          await assert.rejects(store.ping(), error => isFault(error, 'database_unreachable'));
        } finally {
          for (const pid of pids) signalIfThere(pid, 'SIGCONT');
        }
        await recovered(row.id);
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
    dataDir = temporaryFolder(scope, 'unused');
  });
  after(() => scope.close());

  const open = (databaseUrl: Secret) => openStore({ databaseUrl, dataDir, log: silentLog, clock: systemClock });
  const refused = (databaseUrl: Secret, code: string, text: RegExp) =>
    assert.rejects(open(databaseUrl), error => isFault(error, code) && text.test(error.message));
  const urlWith = (change: (url: URL) => void): Secret => {
    const url = new URL(server.url.reveal());
    change(url);
    return new Secret(url.href);
  };

  it('the store waits for a free connection for longer than a new connection may take', async () => {
    const { db, close } = openDatabase({ url: server.url }, silentLog, { poolMax: 1 });
    const sleep = sql`select pg_sleep(6)`.execute(db);
    const { rows } = await sql<{ one: number }>`select 1 as one`.execute(db);
    assert.equal(rows[0]?.one, 1);
    await sleep;
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

  it('an unreachable database server is reported after a wait that can be aborted', async () => {
    const url = urlWith(it => {
      it.port = '1';
    });
    const control = new AbortController();
    const opening = openStore({
      databaseUrl: url,
      dataDir,
      log: silentLog,
      clock: systemClock,
      signal: control.signal,
    });
    setTimeout(() => control.abort(new Error('enough')), 300);
    await assert.rejects(opening, /enough|aborted/);
  });

  it('a wrong encoding of the database is reported', async () => {
    await query(server, `create database latin encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`);
    await refused(
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
    // No PostgreSQL that old is available, so this one is made to report an old version.
    await query(
      { url },
      `create function public.current_setting(text) returns text language sql as $$
      select case $1 when 'server_version_num' then '140011' when 'server_version' then '14.11' else 'UTF8' end $$`,
    );
    url.reveal();
    const old = new Secret(`${url.reveal()}?options=${encodeURIComponent('-c search_path=public,pg_catalog')}`);
    await refused(old, 'database_too_old', /PostgreSQL 14\.11.*15/);
  });

  it('a database of a newer version is reported and not changed', async () => {
    await query(server, 'create database newer');
    const url = urlWith(it => {
      it.pathname = '/newer';
    });
    await (await open(url)).close();
    await query({ url }, `insert into berth_migrations values ('9999-later', '2030-01-01')`);
    await refused(url, 'database_unusable', /newer version/);
  });

  it('a missing permission to create tables is reported', async () => {
    await query(server, 'create database locked');
    await query(server, `create role weak login password 'weak'`);
    const url = urlWith(it => {
      it.pathname = '/locked';
      it.username = 'weak';
      it.password = 'weak';
    });
    await refused(url, 'database_unusable', /permission denied/);
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
  return byHand({ login: { connectionString: server.url.reveal() } }, text);
}

async function byHand(place: Pick<Place, 'login'>, text: string): Promise<unknown[]> {
  const client = new pg.Client(place.login);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const application = (billingAccountId: AccountId, name: string): ApplicationRow => {
  const id = newId<ApplicationId>(NOW);
  return { id, name, slug: `s-${id}`, billingAccountId, revision: 1, createdAt: NOW, updatedAt: NOW };
};

const credential = () => ({
  name: 'nightly',
  prefix: 'bak_x7Qk',
  hash: createHash('sha256').update(randomBytes(32)).digest(),
  scopes: ['browsers:read', 'browsers:write'],
  cidrAllow: [],
  createdAt: NOW,
});

const key = (applicationId: ApplicationId): KeyRow => ({
  ...credential(),
  id: newId<KeyId>(NOW),
  applicationId,
  revision: 1,
  grants: [],
});

const token = (accountId: AccountId): TokenRow => ({
  ...credential(),
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
