// Sessions per minute, one at a time and several at once, compared with browsers started by hand.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { byHandCycle, sessionCycle } from './lifecycle.ts';
import { type Comparison, comparison } from './statistics.ts';

const MINUTE_MS = 60_000;

export interface ThroughputFigure {
  readonly atOnce: number;
  readonly comparison: Comparison;
}

export async function measureThroughput(
  server: TestServer,
  { lanes, turns, turnMs }: { lanes: readonly number[]; turns: number; turnMs: number },
): Promise<readonly ThroughputFigure[]> {
  const figures: ThroughputFigure[] = [];
  for (const atOnce of lanes) {
    const byHand: number[] = [];
    const ours: number[] = [];
    for (let turn = 0; turn < turns; turn++) {
      byHand.push(await perMinute(atOnce, turnMs, byHandCycle));
      ours.push(await perMinute(atOnce, turnMs, () => sessionCycle(server)));
    }
    figures.push({ atOnce, comparison: comparison(byHand, ours) });
  }
  return figures;
}

/**
 * Starts cycles for `ms`. Cycles that are still running at that time are finished and counted. The rate includes the
 * additional time that they take.
 */
async function perMinute(atOnce: number, ms: number, cycle: () => Promise<unknown>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  let completedCycles = 0;
  const lane = async (): Promise<void> => {
    while (systemClock.monotonicMs() - startMs < ms) {
      await cycle();
      completedCycles++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return (completedCycles / (systemClock.monotonicMs() - startMs)) * MINUTE_MS;
}
