// Limits and idempotency in the store, on the embedded PostgreSQL and on an operator's server. The database decides the
// outcome of concurrent requests.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { FleetRates } from '../../server/domain/limits/fleet-rates.ts';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { IdempotencyRow } from '../../server/engines/store/rows/idempotency.ts';
import type { QueuePosition, WaitingCreate } from '../../server/engines/store/rows/line.ts';
import type { PlaceOptions } from '../../server/engines/store/rows/place.ts';
import type { RequestRateRows } from '../../server/engines/store/rows/request-rates.ts';
import type { NewSession, PlaceOutcome, SessionRow } from '../../server/engines/store/rows/sessions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { eventually } from '../harness/until.ts';
import { clockAt, makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const SECOND_MS = 1000;
const FULL = { why: 'host', limit: 1, used: 1, retryAfterSeconds: 5 };
const DAY_MS = 24 * 3600 * SECOND_MS;
const NOW = new Date('2026-11-20T10:00:00.123Z');
const clock = clockAt(NOW);

describeLimits('embedded', async scope => ({ dataDir: makeTemporaryFolder(scope, 'limits'), log: silentLog, clock }));
describeLimits('external', async scope => {
  const server = await startForeignServer(scope);
  return { databaseUrl: server.url, dataDir: makeTemporaryFolder(scope, 'unused'), log: silentLog, clock };
});

function describeLimits(name: string, prepare: (scope: Scope) => Promise<StoreOptions>): void {
  describe(`limits in the store, ${name} database`, () => {
    const scope = new Scope();
    let options: StoreOptions;
    let store: Store;

    before(async () => {
      options = await prepare(scope);
      store = scope.own(await openStore(options));
    });
    after(() => scope.close());

    const anApplication = async (): Promise<ApplicationId> => {
      const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
      await store.accounts.insert(account);
      const id = newId<ApplicationId>(NOW);
      const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account.id, revision: 1 };
      const outcome = await store.applications.insert({ ...row, createdAt: NOW, updatedAt: NOW }, account.id, 50);
      assert.equal(outcome, 'inserted');
      return id;
    };
    const aKey = async (applicationId: ApplicationId): Promise<KeyId> => {
      const id = newId<KeyId>(NOW);
      const hash = createHash('sha256').update(id).digest();
      const row = {
        id,
        applicationId,
        name: 'k',
        prefix: 'bak_',
        hash,
        scopes: [],
        cidrAllow: [],
        grants: [],
        revision: 1,
      };
      assert.equal(await store.keys.insert({ ...row, createdAt: NOW }, 50), 'inserted');
      return id;
    };
    const aHost = async (slots = 1000): Promise<HostId> => {
      const id = newId<HostId>(NOW);
      await store.hosts.announce({ id, region: 'local', slots, startedAt: NOW });
      return id;
    };
    const assertPlaced = async (placing: Promise<PlaceOutcome>): Promise<SessionRow> => {
      const result = await placing;
      assert.ok('placed' in result, JSON.stringify(result));
      return result.placed;
    };
    const end = async (id: SessionId): Promise<void> => {
      await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, NOW);
      assert.equal((await store.sessions.finish(id, NOW, 0))?.status, 'COMPLETED');
    };
    const aRun = async (more: Partial<IdempotencyRow> = {}): Promise<IdempotencyRow> => {
      const row: IdempotencyRow = {
        owner: newId<ApplicationId>(NOW),
        keyDigest: digest(randomUUID()),
        run: randomUUID(),
        requestDigest: digest('request'),
        operation: 'createSession',
        hostId: more.hostId ?? (await aHost()),
        createdAt: NOW,
        expiresAt: addMs(NOW, DAY_MS),
        ...more,
      };
      return row;
    };

    describe('configured limits', () => {
      it('configured limits are empty at first, can be replaced only with the current revision, and can be removed', async () => {
        const id = await anApplication();
        assert.deepEqual(await store.limits.get(id), {
          applicationId: id,
          configured: {},
          revision: 1,
          updatedAt: NOW,
        });
        const configured = { browsers: { maxConcurrent: 3 } };
        const changedAt = addMs(NOW, SECOND_MS);
        const row = { applicationId: id, configured, revision: 2, updatedAt: changedAt };
        assert.deepEqual(await store.limits.replace(id, 1, configured, changedAt), row);
        assert.equal(await store.limits.replace(id, 1, {}, changedAt), undefined);
        assert.deepEqual(await store.limits.get(id), row);
        assert.deepEqual((await store.limits.replace(id, 2, {}, changedAt))?.configured, {});
        assert.equal(await store.limits.get(newId<ApplicationId>(NOW)), undefined);
      });
    });

    describe('the queue of a fleet', () => {
      const joinQueue = (
        applicationId: ApplicationId,
        hostId: HostId,
        change: Partial<WaitingCreate> = {},
        maxWaiting = 10,
      ) => store.line.join({ applicationId, hostId, region: null, why: 'host', refused: FULL, ...change }, maxWaiting);
      const joinSuccessfully = async (...asked: Parameters<typeof joinQueue>): Promise<QueuePosition> => {
        const position = await joinQueue(...asked);
        return 'turn' in position ? position : assert.fail('the queue was full');
      };
      const place = (applicationId: ApplicationId, hostId: HostId, line: Partial<QueuePosition> = {}) =>
        store.sessions.place(newSession({ applicationId, hostId }), { ...placeOptions(NOW), line });
      const readOrder = async () => (await store.line.list(100)).map(({ place }) => place);

      it('the queue gives free slots to the first waiting create requests, and alternates between applications', async () => {
        const [a, b] = [await anApplication(), await anApplication()];
        const hostId = await aHost(2);
        const [first, second] = [await joinSuccessfully(a, hostId), await joinSuccessfully(a, hostId)];
        const third = await joinSuccessfully(b, hostId);
        assert.deepEqual(await readOrder(), [first.place, third.place, second.place]);
        assert.deepEqual(await store.line.positionOf(a, second), { position: 2, waiting: 2 });
        const late = await place(b, hostId);
        assert.deepEqual('full' in late && late.full, { slots: 2, used: 2 });
        assert.ok('full' in (await place(a, hostId, second)));
        // The two free slots are for the first two creates in the queue, `first` and `third`.
        await assertPlaced(place(b, hostId, third));
        assert.deepEqual(await readOrder(), [first.place, second.place]);
        const { id } = await assertPlaced(place(a, hostId, first));
        assert.ok('full' in (await place(a, hostId, second)));
        await end(id);
        await assertPlaced(place(a, hostId, second));
        assert.deepEqual(await readOrder(), []);
      });

      it('a create request that waits for another region or for the limit of its application does not delay other applications', async () => {
        const [a, b] = [await anApplication(), await anApplication()];
        const hostId = await aHost(1);
        const farPosition = await joinSuccessfully(a, hostId, { region: 'far' });
        const limitedPosition = await joinSuccessfully(a, hostId, {
          why: 'concurrent',
          refused: { why: 'concurrent' },
        });
        const outcome = await place(a, hostId);
        assert.deepEqual('behind' in outcome && outcome.behind, { why: 'concurrent' });
        await assertPlaced(place(b, hostId));
        for (const { place } of [farPosition, limitedPosition]) await store.line.leave(place);
      });

      it('the queue holds no more create requests of an application than its limit allows, even if they join concurrently', async () => {
        const [application, hostId] = [await anApplication(), await aHost()];
        const all = await Promise.all([1, 2, 3, 4].map(() => joinQueue(application, hostId, {}, 2)));
        const positions = all.flatMap(one => ('turn' in one ? [one] : []));
        assert.equal(positions.length, 2);
        assert.equal(await store.line.waitingOf(application), 2);
        const [first, second] = positions.toSorted((one, other) => one.place - other.place);
        assert.ok(first && second);
        await store.line.leave(first.place);
        const rest = { applicationId: application, hostId, region: null, why: 'host', refused: FULL };
        await store.line.refresh([{ ...rest, ...first }], [{ ...rest, ...second }]);
        assert.deepEqual(await readOrder(), [first.place, second.place]);
        for (const { place } of positions) await store.line.leave(place);
      });
    });

    it('two hosts together admit about as many requests of a credential as the limit allows, with few database queries', async () => {
      let queryCount = 0;
      const rows: RequestRateRows = {
        ...store.requestRates,
        take: (...bucket) => {
          queryCount += 1;
          return store.requestRates.take(...bucket);
        },
      };
      const perMinute = { reads: 100, writes: 100 };
      const hosts = [1, 2].map(
        () => new FleetRates({ perMinute, rows, clock: systemClock, log: silentLog, isAlone: () => false }),
      );
      const credential = { kind: 'agentKey', keyId: randomUUID() as KeyId } as const;
      const tryTake = async (host: FleetRates | undefined): Promise<number> =>
        (await host?.take(credential, true).then(
          () => 1,
          () => 0,
        )) ?? 0;
      let admittedCount = 0;
      for (let request = 0; request < 240; request += 1) admittedCount += await tryTake(hosts[request % 2]);
      // Fewer than 100 requests are admitted if a host has not used all that it took from the limit. More are admitted
      // if the limit was refilled during the loop.
      assert.ok(admittedCount >= 88 && admittedCount <= 110, String(admittedCount));
      assert.ok(queryCount <= 60, String(queryCount));
    });

    it('concurrent requests of a credential are all admitted if their number does not exceed the limit', async () => {
      const perMinute = { reads: 100, writes: 100 };
      const rows = store.requestRates;
      const host = new FleetRates({ perMinute, rows, clock: systemClock, log: silentLog, isAlone: () => false });
      const credential = { kind: 'agentKey', keyId: randomUUID() as KeyId } as const;
      await Promise.all(Array.from({ length: 100 }, () => host.take(credential, true)));
    });

    it('concurrent attempts are counted exactly, and no longer count after they are taken back or their period is over', async () => {
      const name = { tally: 'codes', digest: createHash('sha256').update(randomUUID()).digest() };
      const limit = { max: 5, withinMs: 600_000 };
      const firstOutcomes = await Promise.all(Array.from({ length: 20 }, () => store.attempts.count(name, limit)));
      const countedTimes = firstOutcomes.flatMap(one => ('at' in one ? [one.at] : []));
      assert.equal(countedTimes.length, 5);
      const waitsMs = firstOutcomes.flatMap(one => ('waitMs' in one ? [one.waitMs] : []));
      assert.ok(
        waitsMs.every(ms => ms > 500_000 && ms <= 600_000),
        String(waitsMs),
      );
      await store.attempts.takeBack(name, countedTimes[2] ?? assert.fail());
      const secondOutcomes = await Promise.all([1, 2].map(() => store.attempts.count(name, limit)));
      assert.equal(secondOutcomes.filter(one => 'at' in one).length, 1);
      assert.ok('at' in (await store.attempts.count({ ...name, tally: 'others' }, limit)));
      const shortLimit = { max: 1, withinMs: 1 };
      await eventually(
        'the period to be over',
        () => store.attempts.count(name, shortLimit),
        one => 'at' in one,
      );
    });

    it('a sweep removes all attempt counters except the given number of most recent ones', async () => {
      const names = Array.from({ length: 4 }, (_, index) => ({ tally: `kept ${index}`, digest: Buffer.alloc(32) }));
      const limit = { max: 1, withinMs: 600_000 };
      for (const name of names) await store.attempts.count(name, limit);
      await store.attempts.sweep(2);
      const refusals: boolean[] = [];
      for (const name of names.toReversed()) refusals.push('waitMs' in (await store.attempts.count(name, limit)));
      assert.deepEqual(refusals, [true, true, false, false]);
    });

    describe('admission', () => {
      it('exactly as many sessions as the limit allows are placed when two processes try to place a hundred concurrently', async () => {
        const applicationId = await anApplication();
        const hosts = [await aHost(), await aHost()];
        // The embedded database allows only one Berth server, so both hosts then share one store. With an external
        // database, a second store stands in for a second process.
        const otherStore = options.databaseUrl ? await openStore(options) : store;
        const placeAlternately = (index: number) =>
          (index % 2 ? store : otherStore).sessions.place(
            newSession({ applicationId, hostId: hosts[index % 2] ?? assert.fail() }),
            placeOptions(NOW, { maxConcurrent: 10 }),
          );
        const outcomes = await Promise.all(Array.from({ length: 100 }, (_, index) => placeAlternately(index)));
        if (otherStore !== store) await otherStore.close();
        const livingCounts = outcomes.flatMap(reply => ('placed' in reply ? [reply.use?.living] : []));
        assert.deepEqual(
          livingCounts.toSorted((one, two) => Number(one) - Number(two)),
          [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        );
        const refusals = outcomes.filter(reply => 'over' in reply);
        assert.equal(refusals.length, 90);
        for (const { over } of refusals) assert.equal(over.living, 10);
        assert.deepEqual(await store.sessions.countOf(applicationId, addMs(NOW, -60 * SECOND_MS), NOW), {
          living: 10,
          created: 10,
          egressBytes: 0,
        });
      });

      it('sessions created in the last sixty seconds count towards the limit per minute, even if they have ended', async () => {
        const applicationId = await anApplication();
        const hostId = await aHost();
        const create = (seconds: number) => {
          const at = addMs(NOW, seconds * SECOND_MS);
          const row = newSession({ applicationId, hostId, id: newId<SessionId>(at), createdAt: at });
          return store.sessions.place(row, placeOptions(at, { maxCreatesPerMinute: 2 }));
        };
        await end((await assertPlaced(create(0))).id);
        await end((await assertPlaced(create(30))).id);
        const outcome = await create(59);
        assert.ok('over' in outcome);
        assert.deepEqual(outcome.over, { configured: {}, living: 0, created: 2, egressBytes: 0, oldest: NOW });
        await assertPlaced(create(60));
        assert.ok('over' in (await create(89)));
        await assertPlaced(create(90));
      });

      it('a create request that waited in the queue is counted from the time of its placement', async () => {
        const applicationId = await anApplication();
        const hostId = await aHost();
        const id = newId<SessionId>(addMs(NOW, -50 * SECOND_MS));
        const waitingSession = newSession({ applicationId, hostId, id, createdAt: NOW });
        assert.ok(
          'placed' in (await store.sessions.place(waitingSession, placeOptions(NOW, { maxCreatesPerMinute: 1 }))),
        );
        const now = addMs(NOW, 59 * SECOND_MS);
        const next = newSession({ applicationId, hostId, id: newId<SessionId>(now), createdAt: now });
        assert.ok('over' in (await store.sessions.place(next, placeOptions(now, { maxCreatesPerMinute: 1 }))));
        assert.equal((await store.sessions.countOf(applicationId, addMs(now, -60 * SECOND_MS), now)).created, 1);
      });

      it('the egress bytes of a day are added up and taken into account for placements on that day, and old totals are deleted', async () => {
        const [one, two] = [await anApplication(), await anApplication()];
        const hostId = await aHost();
        const readEgressBytes = async (applicationId: ApplicationId, createdAt: Date): Promise<number> => {
          const row = newSession({ applicationId, hostId, createdAt });
          const outcome = await store.sessions.place(row, placeOptions(createdAt, { maxConcurrent: 0 }));
          assert.ok('over' in outcome);
          return outcome.over.egressBytes;
        };
        const day = (id: ApplicationId, bytes: number) => new Map([[id, bytes]]);
        await store.egressDays.add('2026-11-20', day(one, 5));
        const totals = await store.egressDays.add('2026-11-20', new Map([...day(two, 7), ...day(one, 2 ** 40)]));
        assert.deepEqual(
          new Map(totals.map(({ applicationId, bytes }) => [applicationId, bytes])),
          new Map([
            [one, 2 ** 40 + 5],
            [two, 7],
          ]),
        );
        assert.deepEqual(totals[0]?.configured, {});
        await store.egressDays.add('2026-11-21', day(one, 3));
        assert.deepEqual([await readEgressBytes(one, NOW), await readEgressBytes(two, NOW)], [2 ** 40 + 5, 7]);
        assert.equal(await readEgressBytes(one, new Date('2026-11-20T23:59:59.999Z')), 2 ** 40 + 5);
        assert.equal(await readEgressBytes(one, new Date('2026-11-21T00:00:00.000Z')), 3);
        assert.equal(await store.egressDays.forget('2026-11-21'), 2);
        assert.deepEqual([await readEgressBytes(one, NOW), await readEgressBytes(two, NOW)], [0, 0]);
      });

      it('the egress bytes of many applications are added up correctly when they are added concurrently', async () => {
        const applications = await Promise.all(Array.from({ length: 5 }, anApplication));
        const reversedApplications = applications.toReversed();
        const oneByteEach = (ids: readonly ApplicationId[]) => new Map(ids.map(id => [id, 1]));
        const additions = Array.from({ length: 40 }, (_, n) =>
          store.egressDays.add('2026-11-22', oneByteEach(n % 2 === 0 ? applications : reversedApplications)),
        );
        await Promise.all(additions);
        const totals = await store.egressDays.add('2026-11-22', oneByteEach(applications));
        assert.deepEqual(
          totals.map(({ bytes }) => bytes),
          [41, 41, 41, 41, 41],
        );
      });

      it('the limits of the application are checked before the slots of the host, and a refused create request changes nothing', async () => {
        const [one, two] = [await anApplication(), await anApplication()];
        const hostId = await aHost(1);
        const create = (applicationId: ApplicationId, maxConcurrent: number) =>
          store.sessions.place(newSession({ applicationId, hostId }), placeOptions(NOW, { maxConcurrent }));
        const placedSession = await assertPlaced(create(one, 1));
        assert.ok('over' in (await create(one, 1)));
        assert.deepEqual(await create(two, 1), { full: { slots: 1, used: 1 } });
        assert.ok('over' in (await create(two, 0)));
        await end(placedSession.id);
        await assertPlaced(create(two, 1));
      });

      it('placing a session returns the current limits, and fails if the terms callback throws', async () => {
        const applicationId = await anApplication();
        const hostId = await aHost();
        await store.limits.replace(applicationId, 1, { browsers: { maxTimeout: 60 } }, NOW);
        const row = newSession({ applicationId, hostId });
        const outcome = await store.sessions.place(row, placeOptions(NOW));
        assert.ok('placed' in outcome);
        assert.deepEqual(outcome.use?.configured, { browsers: { maxTimeout: 60 } });
        const terms = (): never => {
          throw new Error('too long');
        };
        const refusedSession = newSession({ applicationId, hostId });
        await assert.rejects(store.sessions.place(refusedSession, { createdAfter: NOW, terms }), /^Error: too long$/);
        assert.equal((await store.sessions.countOf(applicationId, NOW, NOW)).living, 1);
      });

      it('the expiresAt that the terms callback returns is stored instead of the expiresAt of the passed row', async () => {
        const expiresAt = addMs(NOW, 90 * SECOND_MS);
        const row = newSession({ applicationId: await anApplication(), hostId: await aHost() });
        const placedSession = await assertPlaced(
          store.sessions.place(row, {
            createdAfter: NOW,
            terms: () => ({ ...placeOptions(NOW).terms({}), expiresAt }),
          }),
        );
        assert.deepEqual(placedSession.expiresAt, expiresAt);
      });
    });

    describe('idempotency keys', () => {
      it('only one of fifty concurrent requests with the same idempotency key starts a run', async () => {
        const hostId = await aHost();
        const [owner, keyDigest] = [newId<ApplicationId>(NOW), digest('key')];
        const rows = await Promise.all(Array.from({ length: 50 }, () => aRun({ owner, keyDigest, hostId })));
        const outcomes = await Promise.all(rows.map(row => store.idempotency.begin(row)));
        const startedRow = rows[outcomes.findIndex(reply => 'began' in reply)];
        assert.equal(outcomes.filter(reply => 'began' in reply).length, 1);
        for (const reply of outcomes) if ('existing' in reply) assert.deepEqual(reply.existing, startedRow);
      });

      it('idempotency keys are separate for each owner', async () => {
        const row = await aRun();
        assert.deepEqual(await store.idempotency.begin(row), { began: true });
        const otherRun = await aRun({ keyDigest: row.keyDigest });
        assert.deepEqual(await store.idempotency.begin(otherRun), { began: true });
      });

      it('idempotency keys keep the response until they expire, and can then be used again', async () => {
        const row = await aRun();
        await store.idempotency.begin(row);
        await store.idempotency.keep(row, { body: { id: 'x' } });
        const repeatedRun = {
          ...row,
          run: randomUUID(),
          createdAt: addMs(NOW, DAY_MS - 1),
          expiresAt: addMs(NOW, 2 * DAY_MS),
        };
        const existing = { ...row, kept: { body: { id: 'x' } } };
        assert.deepEqual(await store.idempotency.begin(repeatedRun), { existing });
        assert.deepEqual(await store.idempotency.begin({ ...repeatedRun, createdAt: addMs(NOW, DAY_MS) }), {
          began: true,
        });
        const lastOutcome = await store.idempotency.begin({ ...row, run: randomUUID() });
        assert.ok('existing' in lastOutcome);
        assert.deepEqual([lastOutcome.existing.run, lastOutcome.existing.kept], [repeatedRun.run, undefined]);
      });

      it('idempotency keys can be used again after a run is released, and the released run cannot affect the next one', async () => {
        const row = await aRun();
        await store.idempotency.begin(row);
        await store.idempotency.release(row);
        const nextRun = { ...row, run: randomUUID() };
        assert.deepEqual(await store.idempotency.begin(nextRun), { began: true });
        await store.idempotency.keep(row, { body: {} });
        await store.idempotency.release(row);
        assert.deepEqual(await store.idempotency.begin(row), { existing: nextRun });
      });

      it('the id of a placed session is stored with the idempotency key, and nothing is placed if the key does not belong to the run', async () => {
        const applicationId = await anApplication();
        const hostId = await aHost();
        const run = await aRun({ hostId });
        await store.idempotency.begin(run);
        const { id } = await assertPlaced(
          store.sessions.place(newSession({ applicationId, hostId }), { ...placeOptions(NOW), run }),
        );
        assert.deepEqual(await store.idempotency.begin(run), { existing: { ...run, sessionId: id } });
        const foreignRun = await aRun({ hostId });
        const row = newSession({ applicationId, hostId });
        await assert.rejects(store.sessions.place(row, { ...placeOptions(NOW), run: foreignRun }), /taken over/);
        assert.equal(await store.sessions.byId(row.id), undefined);
      });

      it('idempotency keys are removed in batches after they have expired', async () => {
        const hostId = await aHost();
        const old = addMs(NOW, -2 * DAY_MS);
        await store.idempotency.sweep(NOW, 1000);
        for (let count = 0; count < 3; count++)
          await store.idempotency.begin(await aRun({ hostId, createdAt: old, expiresAt: addMs(old, DAY_MS) }));
        const freshRun = await aRun({ hostId });
        await store.idempotency.begin(freshRun);
        assert.equal(await store.idempotency.sweep(NOW, 2), 2);
        assert.equal(await store.idempotency.sweep(NOW, 2), 1);
        assert.equal(await store.idempotency.sweep(NOW, 2), 0);
        assert.ok('existing' in (await store.idempotency.begin(freshRun)));
      });
    });

    describe('claiming the session of a lost response', () => {
      const placeOwedSession = async (more: Partial<NewSession> = {}) => {
        const applicationId = await anApplication();
        const keyId = await aKey(applicationId);
        const hostId = await aHost();
        const createDigest = digest('body');
        const row = await assertPlaced(
          store.sessions.place(newSession({ applicationId, hostId, keyId, createDigest, ...more }), placeOptions(NOW)),
        );
        const claim = (since = addMs(NOW, -120 * SECOND_MS)) =>
          store.sessions.claimLostResponse(keyId, createDigest, since);
        return { row, keyId, hostId, claim };
      };

      it('a session cannot be claimed again while its response is being sent or after the response has arrived', async () => {
        const { row, claim } = await placeOwedSession();
        assert.equal(await claim(), undefined);
        await store.sessions.recordResponse(row.id, true);
        assert.equal(await claim(), undefined);
        await store.sessions.recordResponse(row.id, false);
        assert.equal(await claim(), undefined, 'a response that has arrived cannot be lost');
      });

      it('claiming the session of a lost response succeeds for a request with the same key and body, once per lost response', async () => {
        const { row, keyId, claim } = await placeOwedSession();
        await store.sessions.recordResponse(row.id, false);
        const since = addMs(NOW, -120 * SECOND_MS);
        assert.equal(await store.sessions.claimLostResponse(newId<KeyId>(NOW), digest('body'), since), undefined);
        assert.equal(await store.sessions.claimLostResponse(keyId, digest('other'), since), undefined);
        assert.equal(await claim(NOW), undefined, 'the session is too old');
        const claims = await Promise.all([claim(), claim(), claim()]);
        assert.deepEqual(
          claims.filter(claimed => claimed !== undefined),
          [row],
        );
        await store.sessions.recordResponse(row.id, false);
        assert.equal((await claim())?.id, row.id);
      });

      it('claiming the session of a lost response fails if the end of the session was decided', async () => {
        const { row, claim } = await placeOwedSession();
        await store.sessions.recordResponse(row.id, false);
        await store.sessions.decideEnd(row.id, { status: 'ERROR', reason: 'crashed' }, NOW);
        assert.equal(await claim(), undefined);
      });

      it('claiming the session of a lost response succeeds if the response was being sent when the host restarted', async () => {
        const { row, hostId, claim } = await placeOwedSession();
        assert.equal(await store.sessions.markResponsesLost(await aHost()), 0);
        assert.equal(await store.sessions.markResponsesLost(hostId), 1);
        assert.equal((await claim())?.id, row.id);
      });
    });
  });
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Returns the options that the domain would pass, with high limits by default. */
const placeOptions = (
  createdAt: Date,
  { maxConcurrent = 1000, maxCreatesPerMinute = 1000, egressBytesPerDay = Number.MAX_SAFE_INTEGER } = {},
): PlaceOptions => ({
  createdAfter: addMs(createdAt, -60 * SECOND_MS),
  terms: () => ({
    expiresAt: addMs(createdAt, 300 * SECOND_MS),
    below: { living: maxConcurrent, created: maxCreatesPerMinute, egressBytes: egressBytesPerDay },
  }),
});

const newSession = (given: Partial<NewSession> & Pick<NewSession, 'applicationId' | 'hostId'>): NewSession => ({
  id: newId<SessionId>(NOW),
  region: 'local',
  keepAlive: false,
  userMetadata: {},
  settings: {},
  createdAt: NOW,
  expiresAt: addMs(NOW, 300 * SECOND_MS),
  ...given,
});
