// Limits the number of statements that a request sends to PostgreSQL, because most of them cost a round trip. The
// limits are counts, which do not depend on the speed of the machine. For a create, only the statements that place the
// session are counted. Each call is repeated, and the repetition with the fewest statements counts, because background
// tasks add statements of their own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Scope } from '../../server/kit/scope.ts';
import { Owner } from '../harness/configured.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { liftLimits } from '../harness/limits.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { openStatementCounter } from '../harness/statement-counter.ts';
import { openUpstream } from '../harness/upstream.ts';
import { startForeignServer } from './store-fixtures.ts';

const ROUNDS = 20;
const RATES = { BERTH_RATE_BROWSER_SECOND: '1000', BERTH_RATE_EGRESS_MEGABYTE: '100' };
/**
 * One statement reads the limits. A second statement calls the function that locks the application, counts its
 * sessions, holds credit and inserts the row, in a transaction of its own.
 */
const PLACE_STATEMENTS_MAX = 2;
/**
 * Two statements, sent together, read the operation and the key with its grants. The next four insert the row, record
 * the dispatch, read the signing key, and record the end with its receipt. The seventh, sent after the end was written,
 * wakes readers of the event feed.
 */
const INVOKE_STATEMENTS_MAX = 7;
/**
 * A price is held in the transaction that inserts the row, which adds three statements: its begin, the hold, and its
 * commit.
 */
const PRICED_INVOKE_STATEMENTS_MAX = 10;

const scope = new Scope();
after(() => scope.close());
const database = await startForeignServer(scope);
const counter = await openStatementCounter(database.url.reveal());
scope.defer(() => counter.close());
const upstream = await openUpstream();
const server = await startServer({
  env: {
    BERTH_ENGINE: LIGHT_ENGINE,
    BERTH_SLOTS: '3',
    BERTH_WARM: '0',
    DATABASE_URL: counter.url,
    ...RATES,
    ...upstream.settings,
  },
});
await liftLimits(server);
const grantResult = await server.operate('credits', 'grant', '-', '1000', '--reason', 'for the test');
assert.equal(grantResult.code, 0, grantResult.stderr);

/** Returns the statements of the round that sent the fewest. */
async function fewestStatements(work: () => Promise<unknown>): Promise<readonly string[]> {
  let shortestRound: readonly string[] | undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const sentStatements = await counter.statementsDuring(work);
    if (!shortestRound || sentStatements.length < shortestRound.length) shortestRound = sentStatements;
  }
  return shortestRound ?? [];
}

const assertAtMost = (sentStatements: readonly string[], max: number): void =>
  assert.ok(
    sentStatements.length <= max && sentStatements.length > 1,
    `${sentStatements.length} statements:\n${sentStatements.join('\n')}`,
  );

test(`a metered session is placed with ${PLACE_STATEMENTS_MAX} statements, the last of which also places the credit hold`, async () => {
  let id = '';
  const sentStatements = await counter.statementsDuring(async () => {
    ({ id } = await server.createSession({ keepAlive: true }));
  });
  const placeStatements = sentStatements.filter(text => text.includes('kept plan'));
  assert.equal(placeStatements.length, PLACE_STATEMENTS_MAX, placeStatements.join('\n'));
  assert.match(placeStatements[0] ?? '', /^select .+ from "application_limits" where "application_id" = \$1$/);
  assert.match(placeStatements[1] ?? '', /^select .+\s+from place_session\(/);
  const more = sentStatements.filter(text =>
    /insert into "?(credit_|sessions)|update "?credit_|hold_credit/.test(text),
  );
  assert.deepEqual(more, [], 'nothing else changes credit or places a session');
  await server.release(id);
});

test('the end of a metered session settles its credit in one statement', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const sentStatements = await counter.statementsDuring(async () => {
    await server.release(id);
    await server.waitUntilEnded(id);
  });
  const settleStatements = sentStatements.filter(text => text.includes('settle_session'));
  assert.equal(settleStatements.length, 1);
  assert.match(settleStatements[0] ?? '', /^with "changed" as \(update "sessions"/);
  // The task that meters running sessions may read the balances at any time. Its statement is ignored, because it locks
  // nothing.
  const requestStatements = sentStatements.filter(text => !text.includes('array_agg(purpose_id'));
  assert.deepEqual(
    requestStatements.filter(text => /credit_balances|settle_credit/.test(text)),
    [],
    'nothing locks the balance before',
  );
});

for (const [price, max] of [
  [0, INVOKE_STATEMENTS_MAX],
  [7, PRICED_INVOKE_STATEMENTS_MAX],
] as const)
  test(`a call of an HTTP operation with a price of ${price} takes at most ${max} SQL statements`, async () => {
    const owner = await Owner.open(server);
    await owner.publish(`read.at${price}`, {
      ...{ title: 'Read', description: 'Reads.', kind: 'http', effect: 'read', inputSchema: { type: 'object' } },
      ...{ binding: { method: 'GET', url: `${upstream.url}/read` }, price: { microCredits: price } },
    });
    const { key } = await issueAgentKey(server);
    const sentStatements = await fewestStatements(async () => {
      const { body, text } = await invoke(server, key, `read.at${price}`, {});
      assert.equal(body.status, 'succeeded', text);
      assert.equal(body.cost.captured, price);
    });
    assertAtMost(sentStatements, max);
  });
