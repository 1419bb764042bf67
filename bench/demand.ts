// Compares sessions with browsers started by hand in the same run, under four kinds of demand: one after the other,
// several at once, a burst after a pause, and cold starts. Each round has one block of browsers started by hand and one
// block of sessions. A block of sessions begins and ends when the pool is not starting browsers.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { measureChildren, type ServerCpuMeter, sumOf } from './cpu-groups.ts';
import { type Cycle, runByHandCycle, runSessionCycle, untilRefilled } from './lifecycle.ts';
import { type Comparison, comparisonOf, median } from './statistics.ts';

const MINUTE_MS = 60_000;

export interface Demand {
  readonly name: string;
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

export interface DemandFigure extends Pick<Demand, 'name'> {
  readonly perMinute: Comparison;
  readonly createMs: Comparison;
  /**
   * The time until the browser has answered a CDP command. A browser started by hand opens its port before it can
   * answer commands.
   */
  readonly responseMs: Comparison;
  readonly titleMs: Comparison;
  readonly releaseMs: Comparison;
  /**
   * The CPU time per cycle of all processes of the server and its browsers, or of the browsers started by hand. For the
   * server, it is measured until the pool has stopped starting browsers.
   */
  readonly cpuSeconds: Comparison;
}

interface Block {
  readonly perMinute: number;
  readonly createMs: number;
  readonly responseMs: number;
  readonly titleMs: number;
  readonly releaseMs: number;
  readonly cpuSeconds: number;
}

export async function measureDemand(
  server: TestServer,
  cpuMeter: ServerCpuMeter,
  demand: Demand,
  isWarm: boolean,
): Promise<DemandFigure> {
  const byHandBlocks: Block[] = [];
  const ourBlocks: Block[] = [];
  const untilSettled = (): Promise<void> => (isWarm ? untilRefilled(server) : Promise.resolve());
  await runSessionCycle(server); // the first round reads everything from disk
  await runByHandCycle();
  for (let round = 0; round < demand.rounds; round++) {
    await untilSettled();
    await measureChildren('by-hand', async readSeconds => {
      byHandBlocks.push(await runBlock(demand, runByHandCycle, async () => readSeconds()));
    });
    await untilSettled();
    await systemClock.sleep(demand.restMs);
    const cpuSecondsBefore = sumOf(cpuMeter.read());
    const measureCpuSeconds = async (): Promise<number> => {
      await untilSettled();
      return sumOf(cpuMeter.read()) - cpuSecondsBefore;
    };
    ourBlocks.push(await runBlock(demand, () => runSessionCycle(server), measureCpuSeconds));
  }
  const compareBlocks = (key: keyof Block): Comparison =>
    comparisonOf(
      byHandBlocks.map(each => each[key]),
      ourBlocks.map(each => each[key]),
    );
  return {
    name: demand.name,
    perMinute: compareBlocks('perMinute'),
    createMs: compareBlocks('createMs'),
    responseMs: compareBlocks('responseMs'),
    titleMs: compareBlocks('titleMs'),
    releaseMs: compareBlocks('releaseMs'),
    cpuSeconds: compareBlocks('cpuSeconds'),
  };
}

async function runBlock(
  { lanes, cycles }: Demand,
  runCycle: () => Promise<Cycle>,
  measureCpuSeconds: () => Promise<number>,
): Promise<Block> {
  const startMs = systemClock.monotonicMs();
  const finishedCycles: Cycle[] = [];
  let remainingCycles = cycles;
  const runLane = async (): Promise<void> => {
    while (remainingCycles-- > 0) finishedCycles.push(await runCycle());
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  const durationMs = systemClock.monotonicMs() - startMs;
  return {
    perMinute: (cycles / durationMs) * MINUTE_MS,
    createMs: median(finishedCycles.map(each => each.created)),
    responseMs: median(finishedCycles.map(each => each['CDP answers'])),
    titleMs: median(finishedCycles.map(each => each['page title'])),
    releaseMs: median(finishedCycles.map(each => each.release)),
    cpuSeconds: (await measureCpuSeconds()) / cycles,
  };
}
