// The server is killed before, during and after the statement that records the dispatch of an HTTP call. The upstream
// counts requests. A write arrives once or not at all, or again with the same key, and the state of the invocation
// shows which of these happened.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import pg from 'pg';
import type { Credits } from '../../contract/credits.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { Scope } from '../../server/kit/scope.ts';
import { startForeignServer } from '../engines/store-fixtures.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const HOLD_SECONDS = 4;
const PRICE = 700;
const KEY_HEADER = 'idempotency-key';
const upstream = await openUpstream();
const scope = new Scope();
after(() => scope.close());
/** The database keeps running when the server is killed, like the database of an operator. */
const database = await startForeignServer(scope);
const server = await startServer({
  env: {
    ...{ BERTH_SLOTS: '0', DATABASE_URL: database.url.reveal(), ...upstream.settings },
    // Credit is enforced only if there is a rate.
    BERTH_RATE_BROWSER_SECOND: '1000',
    BERTH_SECRET: randomBytes(32).toString('hex'),
    BERTH_MASTER_KEY: randomBytes(32).toString('hex'),
  },
});

async function queryDatabase(query: string, values: readonly unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.url.reveal() });
  await client.connect();
  try {
    return (await client.query(query, [...values])).rows;
  } finally {
    await client.end();
  }
}

const owner = await Owner.open(server);
const token = await createOwnerToken(server);
const KINDS = {
  read: { effect: 'read' },
  write: { effect: 'write' },
  keyed: { effect: 'write', binding: { idempotencyHeader: KEY_HEADER } },
} as const;
type Kind = keyof typeof KINDS;
const idOf = (kind: Kind): string => `orders.${kind}`;
for (const kind of ['read', 'write', 'keyed'] as const)
  await owner.publish(idOf(kind), cancelOrderOperation(upstream, { ...KINDS[kind], price: { microCredits: PRICE } }));
const { key } = await issueAgentKey(server, {
  grants: [
    { operationId: '*', effect: 'read' },
    ...(['write', 'keyed'] as const).map(kind => ({ operationId: idOf(kind) })),
  ],
});

const grantResult = await server.operate('credits', 'grant', '-', '1', '--reason', 'for the test');
assert.equal(grantResult.code, 0, grantResult.stderr);
const readCredits = async (): Promise<Credits> =>
  (await server.api<Credits>('GET', `/v1/applications/${server.applicationId}/credits`, { key: token })).body;

const start = (kind: Kind, orderId: string) =>
  invoke(
    server,
    key,
    idOf(kind),
    { orderId },
    { headers: { 'idempotency-key': orderId, prefer: 'respond-async' } },
  ).catch(() => undefined);

const readRow = async (orderId: string): Promise<{ id: string; state: string } | undefined> => {
  const [row] = await queryDatabase('select id, state from invocations where idempotency_key = $1', [orderId]);
  return row === undefined ? undefined : Object(row);
};

const listArrivedRequests = (orderId: string) => upstream.receivedRequests(`/orders/${orderId}/`);

async function waitForInvocationEnd(orderId: string): Promise<Invocation> {
  const { id } = (await readRow(orderId)) ?? assert.fail(`${orderId} has no invocation`);
  const read = async () => (await server.api<Invocation>('GET', agentPath(server, `invocations/${id}`), { key })).body;
  const endedInvocation = await eventually(`${orderId} to end`, read, ({ endedAt }) => endedAt !== undefined);
  const keys = (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
  const claims = verifyReceipt(endedInvocation.receipt ?? '', {
    keys,
    input: { orderId },
    audience: server.applicationId,
  });
  assert.deepEqual([claims.berth.status, claims.berth.attempts], [endedInvocation.status, endedInvocation.attempts]);
  return endedInvocation;
}

/** Delays the statement that records the dispatch, so that the server can be killed while the statement is running. */
async function holdDispatch(): Promise<void> {
  await queryDatabase(
    `create or replace function hold() returns trigger language plpgsql as $$
    begin perform pg_sleep(${HOLD_SECONDS}); return new; end $$`,
  );
  await queryDatabase(
    `create trigger hold before update on invocations for each row
    when (old.state = 'accepted' and new.state = 'dispatched') execute function hold()`,
  );
}

/** Waits for the delayed statement, then kills the server. */
async function killAtDispatch(): Promise<void> {
  const listHeldStatements = () => queryDatabase(`select pid from pg_stat_activity where wait_event = 'PgSleep'`);
  await eventually('the statement that records the dispatch', listHeldStatements, rows => rows.length === 1);
  await server.kill('SIGKILL');
}

const releaseDispatch = () => queryDatabase('drop trigger hold on invocations');

const EXPECTED_ENDS_BEFORE_COMMIT: Readonly<Record<Kind, readonly [status: string, attempts: number, hits: number]>> = {
  read: ['succeeded', 1, 1],
  write: ['succeeded', 1, 1],
  keyed: ['succeeded', 1, 1],
};
const EXPECTED_ENDS_BEFORE_REQUEST: typeof EXPECTED_ENDS_BEFORE_COMMIT = {
  read: ['succeeded', 2, 1],
  write: ['ambiguous', 1, 0],
  keyed: ['succeeded', 2, 1],
};
const EXPECTED_ENDS_AFTER_REQUEST: typeof EXPECTED_ENDS_BEFORE_COMMIT = {
  read: ['succeeded', 2, 2],
  write: ['ambiguous', 1, 1],
  keyed: ['succeeded', 2, 2],
};

async function assertEnd(orderId: string, [status, attempts, hits]: readonly [string, number, number]): Promise<void> {
  const endedInvocation = await waitForInvocationEnd(orderId);
  assert.deepEqual(
    [endedInvocation.status, endedInvocation.attempts, listArrivedRequests(orderId).length],
    [status, attempts, hits],
    JSON.stringify(endedInvocation.error),
  );
  if (status === 'ambiguous') assert.equal(endedInvocation.error?.code, 'upstream_ambiguous');
  // The price of a successful call is captured once. If the call may have been carried out, its price stays held.
  const isPaid = status === 'succeeded';
  assert.deepEqual([endedInvocation.cost.reserved, endedInvocation.cost.captured], [PRICE, isPaid ? PRICE : 0]);
  const { reservations } = await readCredits();
  assert.equal(reservations.filter(({ purpose }) => purpose.id === endedInvocation.id).length, isPaid ? 0 : 1);
}

for (const kind of ['read', 'write', 'keyed'] as const) {
  test(`${kind}: if the server is killed before the dispatch is committed, the call starts over and its request arrives once`, async () => {
    const orderId = `before-${kind}`;
    await holdDispatch();
    const pendingStart = start(kind, orderId);
    await killAtDispatch();
    await queryDatabase(`select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'`);
    await releaseDispatch();
    await pendingStart;
    assert.deepEqual([(await readRow(orderId))?.state, listArrivedRequests(orderId).length], ['accepted', 0]);
    await server.start();
    await assertEnd(orderId, EXPECTED_ENDS_BEFORE_COMMIT[kind]);
  });

  test(`${kind}: if the server is killed after the dispatch is committed and before the request is sent, the call ends as ${EXPECTED_ENDS_BEFORE_REQUEST[kind][0]}`, async () => {
    const orderId = `at-${kind}`;
    await holdDispatch();
    const pendingStart = start(kind, orderId);
    await killAtDispatch();
    await eventually(
      'the dispatch to be committed',
      () => readRow(orderId),
      row => row?.state === 'dispatched',
    );
    await releaseDispatch();
    await pendingStart;
    assert.equal(listArrivedRequests(orderId).length, 0);
    await server.start();
    await assertEnd(orderId, EXPECTED_ENDS_BEFORE_REQUEST[kind]);
  });

  test(`${kind}: if the server is killed after the request has arrived and before the response, the call ends as ${EXPECTED_ENDS_AFTER_REQUEST[kind][0]}`, async () => {
    const orderId = `after-${kind}`;
    let isHeld = true;
    upstream.respondTo(`/orders/${orderId}/`, (_, response) => {
      if (!isHeld) sendJson(response, 200, { state: 'cancelled' });
    });
    void start(kind, orderId);
    await eventually(
      'the request to arrive',
      () => listArrivedRequests(orderId).length,
      hits => hits === 1,
    );
    isHeld = false;
    await server.restart('SIGKILL');
    await assertEnd(orderId, EXPECTED_ENDS_AFTER_REQUEST[kind]);
    const keys = new Set(listArrivedRequests(orderId).map(({ headers }) => headers[KEY_HEADER]));
    const { id } = (await readRow(orderId)) ?? assert.fail(`${orderId} has no invocation`);
    assert.deepEqual([...keys], [kind === 'keyed' ? id : undefined]);
  });
}

test('a repeated write whose invocation is ambiguous returns the same invocation and sends no second request to the service', async () => {
  const repeatedResponse = await start('write', 'after-write');
  assert.deepEqual(
    [repeatedResponse?.status, repeatedResponse?.body.status, listArrivedRequests('after-write').length],
    [200, 'ambiguous', 1],
  );
  assert.equal(repeatedResponse?.headers['idempotency-replayed'], 'true');
});

test('every entry of the ledger sums to zero, and each successful call was paid for once', async () => {
  const entries = await queryDatabase(
    `select type, funding, available, reserved, revenue, promo from credit_entries order by id`,
  );
  const legs = entries.map(entry => Object(entry)).map(({ type, ...legs }) => ({ type, legs: Object.values(legs) }));
  for (const { type, legs: all } of legs)
    assert.equal(
      all.reduce<number>((sum, leg) => sum + Number(leg), 0),
      0,
      type,
    );
  const count = (wanted: string): number => legs.filter(({ type }) => type === wanted).length;
  const [{ succeeded, ambiguous } = assert.fail()] = (
    await queryDatabase(`select count(*) filter (where state = 'succeeded')::int as succeeded,
      count(*) filter (where state = 'ambiguous')::int as ambiguous from invocations`)
  ).map(row => Object(row));
  assert.ok(succeeded >= 7 && ambiguous >= 2, `${succeeded} ${ambiguous}`);
  assert.deepEqual([count('hold'), count('capture'), count('release')], [succeeded + ambiguous, succeeded, 0]);
  const { balance, reserved } = await readCredits();
  assert.deepEqual([balance, reserved], [1_000_000 - succeeded * PRICE, ambiguous * PRICE]);
});

test('a running write finishes after SIGTERM', async () => {
  const responseSenders: Array<() => void> = [];
  upstream.respondTo(
    '/orders/term/',
    (_, response) => void responseSenders.push(() => sendJson(response, 200, { state: 'cancelled' })),
  );
  void start('write', 'term');
  await eventually(
    'the request to arrive',
    () => listArrivedRequests('term').length,
    hits => hits === 1,
  );
  const pendingRestart = server.restart('SIGTERM');
  setTimeout(() => responseSenders[0]?.(), 500);
  await pendingRestart;
  const endedInvocation = await waitForInvocationEnd('term');
  assert.deepEqual(
    [endedInvocation.status, listArrivedRequests('term').length],
    ['succeeded', 1],
    JSON.stringify(endedInvocation.error),
  );
});
