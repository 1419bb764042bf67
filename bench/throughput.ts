// Sessions per minute, one at a time and several at once, compared with browsers started by hand.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { runByHandCycle, runSessionCycle } from './lifecycle.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const MINUTE_MS = 60_000;

export interface ThroughputFigure {
  readonly concurrency: number;
  readonly comparison: Comparison;
}

export async function measureThroughput(
  server: TestServer,
  { laneCounts, turns, turnMs }: { laneCounts: readonly number[]; turns: number; turnMs: number },
): Promise<readonly ThroughputFigure[]> {
  const figures: ThroughputFigure[] = [];
  for (const concurrency of laneCounts) {
    const byHandRates: number[] = [];
    const ourRates: number[] = [];
    for (let turn = 0; turn < turns; turn++) {
      byHandRates.push(await measurePerMinute(concurrency, turnMs, runByHandCycle));
      ourRates.push(await measurePerMinute(concurrency, turnMs, () => runSessionCycle(server)));
    }
    figures.push({ concurrency, comparison: comparisonOf(byHandRates, ourRates) });
  }
  return figures;
}

/**
 * Starts cycles for `ms` milliseconds. Cycles that are still running after that time are finished and counted. The rate
 * includes the additional time that they take.
 */
async function measurePerMinute(concurrency: number, ms: number, runCycle: () => Promise<unknown>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  let completedCycles = 0;
  const runLane = async (): Promise<void> => {
    while (systemClock.monotonicMs() - startMs < ms) {
      await runCycle();
      completedCycles++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runLane));
  return (completedCycles / (systemClock.monotonicMs() - startMs)) * MINUTE_MS;
}
