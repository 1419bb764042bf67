// How many statements a request sends to PostgreSQL: each is a round trip, and waits for the one before it. Bounds by number, which do
// not depend on the speed of the machine. Of several equal requests the one with the fewest counts, because background tasks add theirs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Scope } from '../../server/kit/scope.ts';
import { Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { invoke, keyWith } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { countStatements } from '../harness/statement-counter.ts';
import { openUpstream } from '../harness/upstream.ts';
import { startForeignServer } from './store-fixtures.ts';

const ROUNDS = 6;
const RATES = { BERTH_RATE_BROWSER_SECOND: '1000', BERTH_RATE_EGRESS_MEGABYTE: '100' };
/** Of a create: the transaction that places it has 7, its start 2. */
const CREATE_MAX = 9;
/** The operation and the grants at once, the row, the dispatch, the signing key, the end with its receipt. */
const INVOKE_MAX = 6;
/** A price is held in the transaction that inserts the row: its begin, the hold, and its commit. */
const PRICED_INVOKE_MAX = 9;

const scope = new Scope();
after(() => scope.close());
const database = await startForeignServer(scope);
const counter = await countStatements(database.url.reveal());
scope.defer(() => counter.close());
const upstream = await openUpstream();
const server = await startServer({
  env: { BERTH_SLOTS: '3', BERTH_WARM: '1', DATABASE_URL: counter.url, ...RATES, ...upstream.settings },
});
await liftLimits(server);
const granted = await server.berth('credits', 'grant', '-', '1000', '--reason', 'for the test');
assert.equal(granted.code, 0, granted.stderr);

/** The statements of the round with the fewest. */
async function fewest(
  work: () => Promise<unknown>,
  between: () => Promise<unknown> = async () => {},
): Promise<readonly string[]> {
  let least: readonly string[] | undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const sent = await counter.during(work);
    if (!least || sent.length < least.length) least = sent;
    await between();
  }
  return least ?? [];
}

const assertAtMost = (sent: readonly string[], most: number): void =>
  assert.ok(sent.length <= most && sent.length > 1, `${sent.length} statements:\n${sent.join('\n')}`);

test(`a create that is metered sends at most ${CREATE_MAX} statements, and one of them holds its credit`, async () => {
  const ids: string[] = [];
  const sent = await fewest(
    async () => void ids.push((await server.createSession({ keepAlive: true })).id),
    () => server.release(ids.at(-1) ?? assert.fail()),
  );
  assertAtMost(sent, CREATE_MAX);
  assert.equal(sent.filter(text => text.includes('hold_credit')).length, 1);
  assert.ok(sent.every(text => text.includes('hold_credit') || !text.includes('credit_')));
});

for (const [price, most] of [
  [0, INVOKE_MAX],
  [7, PRICED_INVOKE_MAX],
] as const)
  test(`a call of an HTTP operation with a price of ${price} sends at most ${most} statements`, async () => {
    const owner = await Owner.of(server);
    await owner.publish(`read.at${price}`, {
      ...{ title: 'Read', description: 'Reads.', kind: 'http', effect: 'read', inputSchema: { type: 'object' } },
      ...{ binding: { method: 'GET', url: `${upstream.url}/read` }, price: { microCredits: price } },
    });
    const { key } = await keyWith(server);
    const sent = await fewest(async () => {
      const { body, text } = await invoke(server, key, `read.at${price}`, {});
      assert.equal(body.status, 'succeeded', text);
      assert.equal(body.cost.captured, price);
    });
    assertAtMost(sent, most);
  });
