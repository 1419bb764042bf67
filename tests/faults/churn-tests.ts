// The two churn tests. Parameters set their length.
import { test } from 'node:test';
import type { Engine } from '../../contract/sessions.ts';
import { liftLimits } from '../harness/limits.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { Census } from './census.ts';
import { churn } from './churn.ts';

const WARM = 2;
/** The number of cycles in which the server is killed. */
const RESTARTS = 5;

export interface ChurnTestOptions {
  readonly countedCycles: number;
  readonly restartCycles: number;
  readonly growthMibMax: number;
  readonly engine: Engine;
}

export async function churnTests({
  countedCycles,
  restartCycles,
  growthMibMax,
  engine,
}: ChurnTestOptions): Promise<void> {
  const pages = await openPages();
  const server = await startServer({
    pages,
    env: {
      ...{ BERTH_SLOTS: '8', BERTH_WARM: `${WARM}`, BERTH_ADOPT_GRACE: '2', BERTH_DISCONNECT_GRACE: '0' },
      BERTH_ENGINE: engine,
    },
  });
  await liftLimits(server);
  // Waits until all warm browsers are running, because their connections hold file descriptors, which are counted at
  // the beginning and at the end.
  const areAllWarm = async () =>
    (await server.fetchFromOperator('/metrics')).text.includes(`\nberth_warm_browsers ${WARM}\n`);
  await eventually('all warm browsers to be running', areAllWarm);

  test(`the counts of running rows, browsers and slots never differ for long in ${countedCycles} cycles with random kills (seed ${countedCycles})`, async t => {
    const census = new Census({ server, waitingMax: 2 * WARM + 1, growthMibMax });
    const tally = await churn({ server, pages, census, seed: countedCycles, cycles: countedCycles, killEvery: 4 });
    for (const [what, seen] of Object.entries({ ...tally, ...census.figures() })) t.diagnostic(`${what}: ${seen}`);
    census.assertAll();
  });

  test(`no open row, process or file of a session remains after ${restartCycles} cycles that also kill the server (seed ${restartCycles})`, async t => {
    const restartEvery = restartCycles / RESTARTS;
    const tally = await churn({
      server,
      pages,
      seed: restartCycles,
      cycles: restartCycles,
      killEvery: 2,
      restartEvery,
    });
    for (const [what, count] of Object.entries(tally)) t.diagnostic(`${what}: ${count}`);
  });
}
