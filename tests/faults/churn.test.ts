// Twenty cycles of create, drive and release with random kills leave nothing behind. Two hundred: churn.slow.test.ts.
import { test } from 'node:test';
import { liftLimits } from '../harness/limits.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { churn } from './churn.ts';

const SEED = 20;

const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_SLOTS: '8', BERTH_ADOPT_GRACE: '2' } });
await liftLimits(server);

test(`20 cycles with random kills (seed ${SEED}) leave nothing behind`, async t => {
  const tally = await churn({ server, pages, seed: SEED, cycles: 20, restartEvery: 10 });
  for (const [what, count] of Object.entries(tally)) t.diagnostic(`${what}: ${count}`);
});
