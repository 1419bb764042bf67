// The credit ledger on a real PostgreSQL, with the role that the server's connections have: 10,000 random holds,
// captures, releases and crashes over several connections, and statements that must be refused.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sessionHold } from '../../server/domain/credits/terms.ts';
import { type Db, openDatabase } from '../../server/engines/store/database.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { NewHold } from '../../server/engines/store/rows/credits.ts';
import type { InvocationRow } from '../../server/engines/store/rows/invocations.ts';
import {
  addCredit,
  hold,
  lockBalance,
  lockHeld,
  meter,
  settle,
} from '../../server/engines/store/tables/credit-ledger.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type HostId,
  type InvocationId,
  type KeyId,
  newId,
  type ReservationId,
  type SessionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { meteredCost, secondsRoundedUp } from '../../server/kit/metered-cost.ts';
import { Scope } from '../../server/kit/scope.ts';
import { createRandomGenerator } from '../harness/random.ts';
import { withTimeLimit } from '../harness/until.ts';
import { makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const STEP_COUNT = 10_000;
const CLIENT_COUNT = 6;
const END_TIMEOUT_MS = 240_000;
const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const RATES = { browserSecond: 1, egressMegabyte: 1 };
const HOST_ID = newId<HostId>(new Date());
const ANY = { living: 1000, created: 1000, egressBytes: 1 };

const scope = new Scope();
after(() => scope.close());
const server = await startForeignServer(scope);
const admin = new pg.Client({ connectionString: server.url.reveal() });
await admin.connect();
scope.defer(() => admin.end());
// The tests do not simulate power loss, so commits need not be durable.
await admin.query('alter system set synchronous_commit = off');
await admin.query('select pg_reload_conf()');
const dataDir = makeTemporaryFolder(scope, 'ledger');
const store = scope.own(await openStore({ databaseUrl: server.url, dataDir, log: silentLog, clock: systemClock }));
assert.ok(store.isConfined);
const roles = await admin.query(
  `select 'berth_server_' || oid as role from pg_database where datname = current_database()`,
);
const role: string = roles.rows[0].role;
const { db } = scope.own(openDatabase({ url: server.url }, silentLog, { role, poolMax: CLIENT_COUNT + 2 }));

interface BilledAccount {
  readonly account: AccountId;
  readonly applications: readonly ApplicationId[];
}

/** Creates an account with two applications and the given credit. */
async function createAccount(credit = 0): Promise<BilledAccount> {
  const now = new Date();
  const account = newId<AccountId>(now);
  await store.accounts.insert({ id: account, name: 'Ada', createdAt: now });
  const applications = [newId<ApplicationId>(now), newId<ApplicationId>(now)];
  for (const id of applications) {
    const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account, revision: 1 };
    assert.equal(await store.applications.insert({ ...row, createdAt: now, updatedAt: now }, account, 50), 'inserted');
  }
  if (credit > 0) await inTrx(trx => addCredit(trx, account, 'grant', credit, { at: now, reason: 'test' }));
  return { account, applications };
}

const inTrx = <T>(work: (trx: Db) => Promise<T>): Promise<T> => db.transaction().execute(work);

function makeHold(applicationId: ApplicationId, amount: number): NewHold {
  const at = new Date();
  const id = newId<ReservationId>(at);
  return { id, applicationId, hostId: HOST_ID, purposeKind: 'session', purposeId: id, amount, rates: RATES, at };
}

const settleCost = (trx: Db, purposeId: string, cost: number) => settle(trx, purposeId, { cost, at: new Date() });

const readBalance = (account: AccountId) =>
  db.selectFrom('creditBalances').selectAll().where('accountId', '=', account).executeTakeFirstOrThrow();

/** Asserts that the tables agree with each other, which they must do after any operation. */
async function assertBooks(): Promise<void> {
  const { rows } = await admin.query(`
    select balances.account_id,
      funding + available + reserved + revenue + promo as sum, available, reserved, revenue,
      (select row(coalesce(sum(e.funding), 0), coalesce(sum(e.available), 0), coalesce(sum(e.reserved), 0),
          coalesce(sum(e.revenue), 0), coalesce(sum(e.promo), 0))::text
        from credit_entries e where e.account_id = balances.account_id) as entered,
      row(funding, available, reserved, revenue, promo)::text as kept,
      (select coalesce(sum(amount - captured), 0) from credit_reservations r
        where r.account_id = balances.account_id and status = 'held') as held,
      (select coalesce(sum(captured), 0) from credit_reservations r where r.account_id = balances.account_id) as captured
    from credit_balances balances`);
  assert.ok(rows.length > 0);
  for (const row of rows) {
    assert.equal(Number(row.sum), 0, JSON.stringify(row));
    assert.ok(Number(row.available) >= 0 && Number(row.reserved) >= 0, JSON.stringify(row));
    assert.equal(row.entered, row.kept, 'the balance is the sum of the entries');
    assert.equal(Number(row.held), Number(row.reserved), 'the sum of the holds equals the reserved credit');
    assert.equal(Number(row.captured), Number(row.revenue), 'the sum of the captures equals the revenue');
  }
  const unbalancedQuery = 'select 1 from credit_entries where funding + available + reserved + revenue + promo <> 0';
  assert.equal((await admin.query(unbalancedQuery)).rows.length, 0);
}

class Aborted extends Error {}

test(`all entries sum to zero and no balance is negative after ${STEP_COUNT} random holds, captures, releases and crashes`, async () => {
  const accounts = [await createAccount(5000), await createAccount(5000), await createAccount(5000)];
  const counts = { held: 0, short: 0, metered: 0, settled: 0, granted: 0, aborted: 0, killed: 0 };
  const rolledBackIds: string[] = [];
  const openHoldIds: string[] = [];

  /**
   * Runs the work in a transaction. Depending on `crash`, the transaction is then committed or aborted, or its
   * connection ends before the commit.
   */
  const perform = async (crash: 'none' | 'abort' | 'kill', work: (trx: Db) => Promise<void>): Promise<boolean> => {
    try {
      await inTrx(async trx => {
        await work(trx);
        if (crash === 'abort') throw new Aborted();
        if (crash === 'kill') await endConnection(trx);
      });
      return true;
    } catch (error) {
      if (crash === 'none') throw error;
      counts[crash === 'abort' ? 'aborted' : 'killed'] += 1;
      return false;
    }
  };

  const step = async (randomBelow: (end: number) => number): Promise<void> => {
    const { account, applications } = accounts[randomBelow(accounts.length)] ?? assert.fail();
    const fate = randomBelow(40);
    const crash = fate === 0 ? 'kill' : fate < 4 ? 'abort' : 'none';
    const action = randomBelow(20);
    if (action < 9 || openHoldIds.length === 0) {
      const newHold = makeHold(applications[randomBelow(2)] ?? assert.fail(), 1 + randomBelow(150));
      let outcome: 'held' | 'short' = 'short';
      const isCommitted = await perform(crash, async trx => {
        outcome = (await hold(trx, newHold)) === 'held' ? 'held' : 'short';
      });
      if (!isCommitted) rolledBackIds.push(newHold.id);
      else if ((outcome as string) === 'held') openHoldIds.push(newHold.id);
      if (isCommitted) counts[outcome] += 1;
    } else if (action < 13) {
      const id = openHoldIds[randomBelow(openHoldIds.length)] ?? assert.fail();
      const cost = randomBelow(60);
      const target = randomBelow(200);
      const now = new Date();
      const use = { metered: { seconds: cost, bytes: 0 }, cost, target, at: now, dueAt: now };
      const isCommitted = await perform(crash, async trx => {
        const lockedHold = await lockHeld(trx, id);
        if (lockedHold) await meter(trx, lockedHold, use);
      });
      if (isCommitted) counts.metered += 1;
    } else if (action < 19) {
      const [id = assert.fail()] = openHoldIds.splice(randomBelow(openHoldIds.length), 1);
      const cost = randomBelow(3) === 0 ? 0 : randomBelow(80);
      const mayExceed = randomBelow(2) === 0;
      const isCommitted = await perform(crash, async trx => {
        await settle(trx, id, { cost, mayExceed, at: new Date() });
      });
      if (isCommitted) counts.settled += 1;
      else openHoldIds.push(id);
    } else {
      const amount = 1 + randomBelow(250);
      const isCommitted = await perform(
        crash,
        async trx => void (await addCredit(trx, account, 'fund', amount, { at: new Date() })),
      );
      if (isCommitted) counts.granted += 1;
    }
  };

  const clients = Array.from({ length: CLIENT_COUNT }, async (_, client) => {
    const random = createRandomGenerator(20261123 + client);
    const randomBelow = (end: number): number => Math.floor(random() * end);
    for (let at = client; at < STEP_COUNT; at += CLIENT_COUNT) await step(randomBelow);
  });
  await withTimeLimit('every step to end', Promise.all(clients), END_TIMEOUT_MS);

  const { held, short, metered, settled: ended, aborted, killed } = counts;
  const isEnough = held > 1000 && short > 50 && metered > 500 && ended > 1000 && aborted > 300 && killed > 100;
  assert.ok(isEnough, JSON.stringify(counts));
  await assertBooks();
  const keptRows = await db
    .selectFrom('creditReservations')
    .select('id')
    .where('id', 'in', rolledBackIds as ReservationId[])
    .execute();
  assert.deepEqual(keptRows, [], 'a rolled back hold leaves no reservation');
  for (const id of openHoldIds) await inTrx(trx => settleCost(trx, id, 0));
  await assertBooks();
  for (const { account } of accounts) assert.equal((await readBalance(account)).reserved, 0);
  const { rows } = await admin.query(
    'select deadlocks::integer from pg_stat_database where datname = current_database()',
  );
  assert.deepEqual(rows, [{ deadlocks: 0 }]);
});

async function endConnection(trx: Db): Promise<void> {
  const { rows } = await trx.executeQuery<{ pid: number }>(pidQuery());
  await admin.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
  // The end of the connection is detected at the next statement, which is the commit.
}

const pidQuery = () => db.selectNoFrom(({ fn }) => fn<number>('pg_backend_pid').as('pid')).compile();

test('exactly one of 40 concurrent holds of the last credit succeeds', async () => {
  const { account, applications } = await createAccount(100);
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      inTrx(trx => hold(trx, makeHold(applications[at % 2] ?? assert.fail(), 100))),
    ),
  );
  assert.equal(outcomes.filter(outcome => outcome === 'held').length, 1);
  for (const outcome of outcomes) if (outcome !== 'held') assert.deepEqual(outcome, { required: 100, available: 0 });
  assert.equal((await readBalance(account)).available, 0);
});

test('an account without credit cannot place a hold', async () => {
  const { applications } = await createAccount();
  const [application = assert.fail()] = applications;
  assert.deepEqual(await inTrx(trx => hold(trx, makeHold(application, 1))), { required: 1, available: 0 });
});

test('exactly one of 20 concurrent settlements of a reservation captures credit', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const newHold = makeHold(application, 600);
  assert.equal(await inTrx(trx => hold(trx, newHold)), 'held');
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => inTrx(trx => settleCost(trx, newHold.id, 500))));
  assert.deepEqual(
    outcomes.filter(outcome => outcome !== undefined),
    [500],
  );
  const { available, reserved, revenue } = await readBalance(account);
  assert.deepEqual({ available, reserved, revenue }, { available: 500, reserved: 0, revenue: 500 });
});

test('a settlement captures no more than its hold by default', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const newHold = makeHold(application, 600);
  await inTrx(trx => hold(trx, newHold));
  assert.equal(await inTrx(trx => settleCost(trx, newHold.id, 5000)), 600);
  assert.equal((await readBalance(account)).available, 400);
});

test('a session that used more than its hold is charged up to the available credit, but no more', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const newHold = makeHold(application, 600);
  await inTrx(trx => hold(trx, newHold));
  const captured = await inTrx(trx => settle(trx, newHold.id, { cost: 5000, mayExceed: true, at: new Date() }));
  assert.equal(captured, 1000);
  const { available, reserved, revenue } = await readBalance(account);
  assert.deepEqual({ available, reserved, revenue }, { available: 0, reserved: 0, revenue: 1000 });
});

test('metering captures the usage so far, and extends the hold only if the credit is sufficient; settling captures the rest', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const newHold = makeHold(application, 600);
  await inTrx(trx => hold(trx, newHold));
  const meterUsage = async (cost: number, target: number) =>
    inTrx(async trx => {
      const lockedHold = await lockHeld(trx, newHold.id);
      const at = new Date();
      return (
        lockedHold && meter(trx, lockedHold, { metered: { seconds: cost, bytes: 0 }, cost, target, at, dueAt: at })
      );
    });
  assert.equal(await meterUsage(100, 700), 'extended');
  assert.equal(await meterUsage(200, 1200), 'short');
  const { available, reserved, revenue } = await readBalance(account);
  assert.deepEqual({ available, reserved, revenue }, { available: 300, reserved: 500, revenue: 200 });
  assert.equal(await inTrx(trx => settleCost(trx, newHold.id, 250)), 250);
  assert.equal((await readBalance(account)).available, 750);
});

for (const amount of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, AMOUNT_MAX + 1])
  test(`holds and grants of ${amount} are rejected with a RangeError`, async () => {
    const { account, applications } = await createAccount(10);
    const [application = assert.fail()] = applications;
    await assert.rejects(
      inTrx(trx => hold(trx, makeHold(application, amount))),
      RangeError,
    );
    await assert.rejects(
      inTrx(trx => addCredit(trx, account, 'grant', amount, { at: new Date() })),
      RangeError,
    );
    const newHold = makeHold(application, 5);
    await inTrx(trx => hold(trx, newHold));
    if (amount !== 0)
      await assert.rejects(
        inTrx(trx => settleCost(trx, newHold.id, amount)),
        RangeError,
      );
    assert.equal((await readBalance(account)).available, 5);
  });

test('a balance can reach 2^53 - 1, and more credit is then refused', async () => {
  const { account } = await createAccount(AMOUNT_MAX);
  assert.equal((await readBalance(account)).available, AMOUNT_MAX);
  await assert.rejects(
    inTrx(trx => addCredit(trx, account, 'grant', 1, { at: new Date() })),
    /violates check constraint/,
  );
  assert.equal((await readBalance(account)).available, AMOUNT_MAX);
});

test('a session without a credit hold can be placed and ended while the balance of its account is locked', async () => {
  const { account, applications } = await createAccount(1000);
  const [applicationId = assert.fail()] = applications;
  const createdAt = new Date();
  await store.hosts.announce({ id: HOST_ID, region: 'local', slots: 5, startedAt: createdAt });
  const id = newId<SessionId>(createdAt);
  await inTrx(async trx => {
    await lockBalance(trx, account);
    const outcome = await store.sessions.place(
      {
        ...{ id, applicationId, hostId: HOST_ID, region: 'local', keepAlive: false, userMetadata: {}, settings: {} },
        ...{ createdAt, expiresAt: addMs(createdAt, 60_000) },
      },
      {
        createdAfter: createdAt,
        terms: () => ({ expiresAt: addMs(createdAt, 60_000), below: ANY }),
        hold: expiresAt => sessionHold({ browserSecond: 0, egressMegabyte: 0 }, HOST_ID, { at: createdAt, expiresAt }),
      },
    );
    assert.ok('placed' in outcome);
    await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, new Date());
    assert.equal((await store.sessions.finish(id, new Date(), 0))?.status, 'COMPLETED');
  });
});

/**
 * Places a session of this application that holds this amount. Returns its id, or undefined if the available credit was
 * too low.
 */
async function placeMeteredSession(
  applicationId: ApplicationId,
  amount: number,
  rates = RATES,
): Promise<SessionId | undefined> {
  const at = new Date();
  await store.hosts.announce({ id: HOST_ID, region: 'local', slots: 500, startedAt: at });
  const id = newId<SessionId>(at);
  const row = {
    ...{ id, applicationId, hostId: HOST_ID, region: 'local', keepAlive: false, userMetadata: {}, settings: {} },
    ...{ createdAt: at, expiresAt: addMs(at, 60_000) },
  };
  const outcome = await store.sessions.place(row, {
    ...{ createdAfter: at, terms: () => ({ expiresAt: row.expiresAt, below: ANY }) },
    hold: () => ({ id: newId<ReservationId>(at), amount, rates }),
  });
  if ('placed' in outcome) return id;
  assert.deepEqual(outcome, { short: { required: amount, available: (await readAvailable(applicationId)) ?? 0 } });
  return undefined;
}

const readAvailable = async (applicationId: ApplicationId): Promise<number | undefined> => {
  const { billingAccountId } = await db
    .selectFrom('applications')
    .select('billingAccountId')
    .where('id', '=', applicationId)
    .executeTakeFirstOrThrow();
  return (await readBalance(billingAccountId)).available;
};

test('ending a session captures the cost that kit/metered-cost.ts calculates, for any usage and rates', async () => {
  const random = createRandomGenerator(33);
  const randomBelow = (end: number): number => Math.floor(random() * end);
  const { account, applications } = await createAccount(8_000_000_000_000_000);
  const [application = assert.fail()] = applications;
  for (let run = 0; run < 150; run += 1) {
    const rates = {
      browserSecond: randomBelow(3) * randomBelow(5_000_000),
      egressMegabyte: 1 + randomBelow(10 ** randomBelow(7)),
    };
    const id = (await placeMeteredSession(application, 1, rates)) ?? assert.fail();
    const startedAt = new Date();
    await store.sessions.markRunning(id, startedAt);
    const bytes = randomBelow(10 ** (1 + randomBelow(9)));
    await store.sessions.setTraffic(id, { proxyBytes: 0, egressBytes: bytes });
    await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, new Date());
    const endedAt = addMs(startedAt, run % 3 === 0 ? 1000 * randomBelow(100) : randomBelow(100_000));
    const balanceBefore = await readBalance(account);
    assert.equal((await store.sessions.finish(id, endedAt, 0))?.status, 'COMPLETED');
    const balanceAfter = await readBalance(account);
    const calculatedCost = meteredCost(rates, { seconds: secondsRoundedUp(startedAt, endedAt), bytes });
    const expectedCost = Math.min(calculatedCost, balanceBefore.available + 1);
    assert.equal(
      balanceAfter.revenue - balanceBefore.revenue,
      expectedCost,
      JSON.stringify({ rates, bytes, startedAt, endedAt }),
    );
    assert.equal(balanceAfter.reserved, 0);
  }
});

for (const lost of ['service_restart', 'host_lost'] as const)
  test(`a session that ends with the reason ${lost} is charged only up to its last metering`, async () => {
    const { account, applications } = await createAccount(1000);
    const [application = assert.fail()] = applications;
    const id = (await placeMeteredSession(application, 100)) ?? assert.fail();
    const startedAt = new Date();
    await store.sessions.markRunning(id, startedAt);
    const at = addMs(startedAt, 10_000);
    const use = { metered: { seconds: 10, bytes: 0 }, cost: 10, target: 100, at, dueAt: at };
    await inTrx(async trx => {
      const lockedHold = (await lockHeld(trx, id)) ?? assert.fail();
      await meter(trx, lockedHold, use);
    });
    await store.sessions.decideEnd(id, { status: 'ERROR', reason: lost }, new Date());
    await store.sessions.finish(id, addMs(startedAt, 90_000), 0);
    assert.equal((await readBalance(account)).revenue, 10);
  });

test('a session keeps its hold until its end is decided, and ten concurrent calls to finish it settle the hold once', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const id = (await placeMeteredSession(application, 100)) ?? assert.fail();
  const startedAt = new Date();
  await store.sessions.markRunning(id, startedAt);
  assert.equal(await store.sessions.finish(id, new Date(), 0), undefined);
  assert.equal((await readBalance(account)).reserved, 100);
  await store.sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, new Date());
  const ends = Array.from({ length: 10 }, (_, at) => store.sessions.finish(id, addMs(startedAt, 1000 * (at + 1)), 0));
  for (const row of await Promise.all(ends)) assert.equal(row?.status, 'COMPLETED');
  const { revenue, reserved } = await readBalance(account);
  assert.ok(revenue >= 1 && revenue <= 10, String(revenue));
  assert.equal(reserved, 0);
  const { rows } = await admin.query(`select count(*)::integer as count from credit_entries
    join credit_reservations on credit_reservations.id = reservation_id where purpose_id = '${id}'`);
  assert.equal(rows[0].count, 2, 'one entry for the hold and one for the settlement');
});

test('only five of 20 concurrent sessions are placed if the credit covers five, and no row remains for the others', async () => {
  const { account, applications } = await createAccount(500);
  const [application = assert.fail()] = applications;
  const ids = await Promise.all(Array.from({ length: 20 }, () => placeMeteredSession(application, 100)));
  assert.equal(ids.filter(id => id !== undefined).length, 5);
  const { rows } = await admin.query(
    `select count(*)::integer as count from sessions where application_id = '${application}'`,
  );
  assert.equal(rows[0].count, 5);
  assert.equal((await readBalance(account)).reserved, 500);
  await assertBooks();
});

test('the database role of the server cannot change or remove entries, set a balance or change a settled reservation', async () => {
  const { account, applications } = await createAccount(1000);
  const [application = assert.fail()] = applications;
  const newHold = makeHold(application, 600);
  await inTrx(trx => hold(trx, newHold));
  await inTrx(trx => settleCost(trx, newHold.id, 100));
  const at = new Date();
  const denialPattern =
    /permission denied|never changed|changed by entries only|was settled|never removed|begins with 0/;
  const entry = { id: newId<never>(at), accountId: account, type: 'grant', at } as const;
  for (const statement of [
    db.updateTable('creditEntries').set({ reason: 'x' }),
    db.deleteFrom('creditEntries'),
    db.updateTable('creditBalances').set({ available: 1_000_000, promo: -1_000_000 }),
    db.deleteFrom('creditBalances'),
    db.insertInto('creditBalances').values({ accountId: newId<AccountId>(at), available: 5, promo: -5 }),
    db.updateTable('creditReservations').set({ status: 'held', settledAt: null }).where('id', '=', newHold.id),
    db.updateTable('creditReservations').set({ captured: 600 }).where('id', '=', newHold.id),
    db.deleteFrom('creditReservations'),
  ])
    await assert.rejects(statement.execute(), denialPattern);
  await assert.rejects(
    db
      .insertInto('creditEntries')
      .values({ ...entry, available: 7 })
      .execute(),
    /credit_legs/,
  );
  const overdraft = { ...entry, available: -901, reserved: 901 };
  await assert.rejects(db.insertInto('creditEntries').values(overdraft).execute(), /credit_available/);
  await assertBooks();
  await assert.rejects(
    admin.query('update credit_entries set reason = null'),
    /never changed/,
    'the administrator cannot change entries either',
  );
  await assert.rejects(admin.query('truncate credit_entries, credit_checkouts'), /never changed/);
});

function makeCall(applicationId: ApplicationId, keyId: KeyId, reserved: number): InvocationRow {
  const createdAt = new Date();
  return {
    ...{ id: newId<InvocationId>(createdAt), applicationId, keyId, hostId: HOST_ID, operationId: 'browser.content' },
    ...{ kind: 'managed', operationRevision: 1, operationDigest: 'sha256:0', effect: 'read', state: 'accepted' },
    ...{ idempotencyKey: 'the same', requestDigest: Buffer.alloc(32), inputDigest: 'sha256:0', meters: {} },
    ...{ attempts: 0, price: 0, reserved, captured: 0, createdAt },
  };
}

test('a call is inserted with its hold if the earlier call with the same idempotency key was deleted before it could be read', async () => {
  const { account, applications } = await createAccount(100);
  const [application = assert.fail()] = applications;
  const key = newId<KeyId>(new Date());
  const earlierCall = makeCall(application, key, 0);
  assert.equal(await store.invocations.insert(earlierCall, RATES), 'inserted');
  await admin.query(`create function withdraw_between() returns trigger language plpgsql as $$
    begin delete from invocations where id = '${earlierCall.id}'; return null; end $$`);
  await admin.query(`create trigger withdraw_between after insert on invocations
    for each statement execute function withdraw_between()`);
  try {
    assert.equal(await store.invocations.insert(makeCall(application, key, 7), RATES), 'inserted');
  } finally {
    await admin.query('drop trigger withdraw_between on invocations');
  }
  assert.equal(await store.invocations.get(application, earlierCall.id), undefined);
  assert.equal(Number((await readBalance(account)).reserved), 7);
});
