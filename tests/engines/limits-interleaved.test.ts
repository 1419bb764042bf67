// Random interleavings of creates, queued creates, releases, byte counts and changes of limits, by the stores of two
// processes on one PostgreSQL. A trigger checks each insert while the insert holds the lock of its application. The
// seed decides what is requested, and the database decides how requests interleave.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as timer } from 'node:timers/promises';
import pg from 'pg';
import { termsOf } from '../../server/domain/limits/admission.ts';
import { configuredLimits, effectiveLimits } from '../../server/domain/limits/browser-limits.ts';
import { AdmissionQueue } from '../../server/domain/limits/queue.ts';
import { refusal } from '../../server/domain/limits/refusals.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { NewSession, SessionRow } from '../../server/engines/store/rows/sessions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { createRandomGenerator } from '../harness/random.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const SEEDS = [1, 20261123];
const CLIENTS_PER_PROCESS = 6;
const STEPS_PER_CLIENT = 60;
const SLOT_COUNT = 9;
const LIMIT_MAX = 6;
const WAIT_MAX_MS = 400;
const END_TIMEOUT_MS = 120_000;
const DAY = '2026-11-23';

/**
 * Raises an error if an insert makes the number of open sessions exceed the limit. The limit is locked during the
 * insert.
 */
const ADMISSION_CHECK_SQL = `
  create function judge_admission() returns trigger language plpgsql as $$
  declare
    most integer := (select (configured->'browsers'->>'maxConcurrent')::integer from application_limits
      where application_id = new.application_id);
    living integer := (select count(*) from sessions
      where application_id = new.application_id and status in ('PENDING', 'RUNNING'));
  begin
    if living > most then raise exception 'judged: % sessions of at most %', living, most; end if;
    return null;
  end $$;
  create trigger judge_admission after insert on sessions for each row execute function judge_admission()`;

const scope = new Scope();
after(() => scope.close());
const server = await startForeignServer(scope);
const dataDir = makeTemporaryFolder(scope, 'interleaved');
const open = async (): Promise<Store> =>
  scope.own(await openStore({ databaseUrl: server.url, dataDir, log: silentLog, clock: systemClock }));
const stores = [await open(), await open()];
const [first] = stores;
assert.ok(first);
const client = new pg.Client({ connectionString: server.url.reveal() });
await client.connect();
scope.defer(() => client.end());
await client.query(ADMISSION_CHECK_SQL);

const limitsWith = (maxConcurrent: number) => ({ browsers: { maxConcurrent, maxCreatesPerMinute: 100_000 } });

async function createApplication(): Promise<ApplicationId> {
  const now = new Date();
  const account = { id: newId<AccountId>(now), name: 'Ada', createdAt: now };
  await first?.accounts.insert(account);
  const id = newId<ApplicationId>(now);
  const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account.id, revision: 1 };
  assert.equal(
    await first?.applications.insert({ ...row, createdAt: now, updatedAt: now }, account.id, 50),
    'inserted',
  );
  assert.ok(await first?.limits.replace(id, 1, limitsWith(LIMIT_MAX), now));
  return id;
}

/** The admission of one server process: a store, a host with slots, and a queue. */
class Process {
  readonly store: Store;
  readonly queue = new AdmissionQueue<SessionRow>(systemClock);
  readonly hostId = newId<HostId>(new Date());
  readonly runningSessions: SessionRow[] = [];

  constructor(store: Store) {
    this.store = store;
  }

  async create(applicationId: ApplicationId, waitMs: number | undefined): Promise<'placed' | 'refused'> {
    const outcome = await this.queue.enter({
      application: applicationId,
      attempt: () => this.#place(applicationId),
      maxWaiting: async () => 1000,
      signal: new AbortController().signal,
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    if ('refused' in outcome) return 'refused';
    this.runningSessions.push(outcome.got);
    return 'placed';
  }

  async #place(applicationId: ApplicationId) {
    const createdAt = new Date();
    const row: NewSession = {
      ...{ id: newId<SessionId>(createdAt), applicationId, hostId: this.hostId, region: 'local', keepAlive: false },
      ...{ userMetadata: {}, settings: {}, createdAt, expiresAt: addMs(createdAt, 300_000) },
    };
    const result = await this.store.sessions.place(row, {
      createdAfter: addMs(createdAt, -60_000),
      terms: configured => termsOf(effectiveLimits(configuredLimits(configured), {}), { createdAt }),
    });
    if ('full' in result) return { refused: refusal('host', result.full.slots, result.full.used) };
    assert.ok(!('short' in result) && !('behind' in result));
    return 'over' in result ? { refused: refusal('concurrent', 0, 0) } : { got: result.placed };
  }

  async release(index: number): Promise<void> {
    const [row] = this.runningSessions.splice(index, 1);
    if (!row) return;
    await this.store.sessions.decideEnd(row.id, { status: 'COMPLETED', reason: 'released' }, new Date());
    assert.equal((await this.store.sessions.finish(row.id, new Date(), 0))?.status, 'COMPLETED');
    this.queue.noteFreeSlot();
  }

  /**
   * Reads the revision and replaces the limits of that revision, like `PUT limits`. Returns false if another change
   * came first.
   */
  async changeLimit(applicationId: ApplicationId, maxConcurrent: number): Promise<boolean> {
    const { revision } = (await this.store.limits.get(applicationId)) ?? assert.fail();
    const row = await this.store.limits.replace(applicationId, revision, limitsWith(maxConcurrent), new Date());
    this.queue.noteFreeSlot();
    return row !== undefined;
  }
}

for (const seed of SEEDS)
  test(`no limit is exceeded, no transaction deadlocks, and every request completes (seed ${seed})`, async () => {
    const applications = [await createApplication(), await createApplication()];
    const processes = stores.map(store => new Process(store));
    for (const { store, hostId } of processes)
      await store.hosts.announce({ id: hostId, region: 'local', slots: SLOT_COUNT, startedAt: new Date() });
    const counts = { placed: 0, refused: 0, changed: 0 };

    const act = async (process: Process, randomBelow: (end: number) => number): Promise<void> => {
      const application = applications[randomBelow(applications.length)] ?? assert.fail();
      const action = randomBelow(10);
      if (action < 3) return void counts[await process.create(application, undefined)]++;
      if (action < 6) return void counts[await process.create(application, 1 + randomBelow(WAIT_MAX_MS))]++;
      if (action < 8) return process.release(randomBelow(Math.max(1, process.runningSessions.length)));
      if (action === 8) {
        if (await process.changeLimit(application, randomBelow(LIMIT_MAX + 1))) counts.changed += 1;
        return;
      }
      const orderedIds = randomBelow(2) === 0 ? applications : applications.toReversed();
      await process.store.egressDays.add(DAY, new Map(orderedIds.map(id => [id, 1])));
    };
    const clients = processes.flatMap((process, number) =>
      Array.from({ length: CLIENTS_PER_PROCESS }, async (_, client) => {
        const random = createRandomGenerator(seed + 1000 * number + client);
        const randomBelow = (end: number): number => Math.floor(random() * end);
        for (let step = 0; step < STEPS_PER_CLIENT; step++) {
          await act(process, randomBelow);
          if (randomBelow(4) === 0) await timer(randomBelow(10));
        }
      }),
    );
    await withTimeLimit('every request to end', Promise.all(clients), END_TIMEOUT_MS);

    assert.ok(counts.placed > 50 && counts.refused > 50 && counts.changed > 20, JSON.stringify(counts));
    for (const process of processes) {
      while (process.runningSessions.length > 0) await process.release(0);
      assert.equal(process.queue.size, 0);
      process.queue.close(() => new Error('closed'));
    }
    const { rows } = await client.query(
      `select count(*)::integer as living from sessions where status in ('PENDING', 'RUNNING')`,
    );
    assert.deepEqual(rows, [{ living: 0 }]);
    const { rows: deadlockRows } = await client.query(
      'select deadlocks::integer from pg_stat_database where datname = current_database()',
    );
    assert.deepEqual(deadlockRows, [{ deadlocks: 0 }]);
  });

test('a create request that read the limits before they were replaced is checked against the new limits', async () => {
  const applicationId = await createApplication();
  const hostId = newId<HostId>(new Date());
  await first.hosts.announce({ id: hostId, region: 'local', slots: SLOT_COUNT, startedAt: new Date() });
  await client.query('begin');
  await client.query(
    'update application_limits set configured = $2, revision = revision + 1 where application_id = $1',
    [applicationId, limitsWith(0)],
  );
  const read: number[] = [];
  const createdAt = new Date();
  const id = newId<SessionId>(createdAt);
  const settings = { region: 'local', keepAlive: false, userMetadata: {}, settings: {}, expiresAt: createdAt };
  const pendingPlacement = first.sessions.place(
    { id, applicationId, hostId, createdAt, ...settings },
    {
      createdAfter: addMs(createdAt, -60_000),
      terms: limits => {
        read.push(configuredLimits(limits).maxConcurrent);
        return termsOf(configuredLimits(limits), { createdAt });
      },
    },
  );
  await eventually('the limits to be read', () => read.length === 1);
  await client.query('commit');
  const outcome = await pendingPlacement;
  assert.ok('over' in outcome, JSON.stringify(outcome));
  assert.deepEqual(read, [LIMIT_MAX, 0]);
  assert.equal(await first.sessions.byId(id), undefined);
});
