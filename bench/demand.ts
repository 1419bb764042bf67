// Measures sessions under demand, compared with browsers started by hand in the same run: one after the other, several
// at once, a burst after a pause, and cold starts. Each round has one block of browsers started by hand and one block
// of sessions. A block of sessions begins and ends when the pool is not starting browsers.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { measureChildren, type ServerAccounts, sumOf } from './cpu-groups.ts';
import { byHandCycle, type Cycle, sessionCycle, untilRefilled } from './lifecycle.ts';
import { type Comparison, comparison, median } from './statistics.ts';

const MINUTE_MS = 60_000;

export interface Demand {
  readonly what: string;
  /**
   * The number of concurrent clients. Each client repeatedly creates a session, opens a page and releases the session,
   * without a pause.
   */
  readonly lanes: number;
  readonly cycles: number;
  readonly rounds: number;
  /**
   * The pause before each block of sessions. During the pause the pool fills up, and earlier demand stops affecting it.
   */
  readonly restMs: number;
}

export interface DemandFigure extends Pick<Demand, 'what'> {
  readonly perMinute: Comparison;
  readonly created: Comparison;
  /** Until the browser has answered a command. By hand, the port listens before the browser can answer. */
  readonly answered: Comparison;
  readonly titled: Comparison;
  readonly released: Comparison;
  /**
   * The CPU time per cycle of all processes of the server and its browsers, or of the browsers started by hand. For the
   * server, it is measured until the pool has stopped starting browsers.
   */
  readonly cpuSeconds: Comparison;
}

interface Block {
  readonly perMinute: number;
  readonly created: number;
  readonly answered: number;
  readonly titled: number;
  readonly released: number;
  readonly cpuSeconds: number;
}

export async function measureDemand(
  server: TestServer,
  accounts: ServerAccounts,
  demand: Demand,
  isWarm: boolean,
): Promise<DemandFigure> {
  const byHand: Block[] = [];
  const ours: Block[] = [];
  const untilSettled = (): Promise<void> => (isWarm ? untilRefilled(server) : Promise.resolve());
  await sessionCycle(server); // the first round reads everything from disk
  await byHandCycle();
  for (let round = 0; round < demand.rounds; round++) {
    await untilSettled();
    await measureChildren('by-hand', async seconds => {
      byHand.push(await runBlock(demand, byHandCycle, async () => seconds()));
    });
    await untilSettled();
    await systemClock.sleep(demand.restMs);
    const before = sumOf(accounts.now());
    const cpuSecondsUsed = async (): Promise<number> => {
      await untilSettled();
      return sumOf(accounts.now()) - before;
    };
    ours.push(await runBlock(demand, () => sessionCycle(server), cpuSecondsUsed));
  }
  const compareBlocks = (key: keyof Block): Comparison =>
    comparison(
      byHand.map(each => each[key]),
      ours.map(each => each[key]),
    );
  return {
    what: demand.what,
    perMinute: compareBlocks('perMinute'),
    created: compareBlocks('created'),
    answered: compareBlocks('answered'),
    titled: compareBlocks('titled'),
    released: compareBlocks('released'),
    cpuSeconds: compareBlocks('cpuSeconds'),
  };
}

async function runBlock(
  { lanes, cycles }: Demand,
  cycle: () => Promise<Cycle>,
  cpuSeconds: () => Promise<number>,
): Promise<Block> {
  const startMs = systemClock.monotonicMs();
  const finished: Cycle[] = [];
  let remaining = cycles;
  const lane = async (): Promise<void> => {
    while (remaining-- > 0) finished.push(await cycle());
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const durationMs = systemClock.monotonicMs() - startMs;
  return {
    perMinute: (cycles / durationMs) * MINUTE_MS,
    created: median(finished.map(each => each.created)),
    answered: median(finished.map(each => each['CDP answers'])),
    titled: median(finished.map(each => each['page title'])),
    released: median(finished.map(each => each.release)),
    cpuSeconds: (await cpuSeconds()) / cycles,
  };
}
