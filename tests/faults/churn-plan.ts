// The random plan of each cycle of a churn, drawn from a seed in advance: the same seed gives the same plan, however the cycles
// overlap.
import { generator } from '../harness/random.ts';

export const KILLS = ['starting', 'browser', 'renderer', 'bwrap', 'timeout'] as const;
export type Kill = (typeof KILLS)[number];

export interface Cycle {
  readonly number: number;
  readonly client: 'playwright' | 'raw';
  readonly keepAlive: boolean;
  readonly kill: Kill | undefined;
  /** Counted from the answer to the create: the client is connecting, at work, or gone. */
  readonly killAfterMs: number;
  /** The server is killed and restarted while the client of this cycle works. */
  readonly restart: boolean;
}

const KILL_WITHIN_MS = 300;

export interface PlanOptions {
  readonly seed: number;
  readonly cycles: number;
  /** One in this many cycles has a process killed. */
  readonly killEvery: number;
  /** One in this many cycles has the server killed. Absent: the server is never killed. */
  readonly restartEvery?: number;
}

export function planOf({ seed, cycles, killEvery, restartEvery }: PlanOptions): readonly Cycle[] {
  const random = generator(seed);
  const below = (end: number): number => Math.floor(random() * end);
  return Array.from({ length: cycles }, (_, number) => ({
    number,
    client: below(2) === 0 ? 'playwright' : 'raw',
    keepAlive: below(2) === 0,
    kill: below(killEvery) === 0 ? KILLS[below(KILLS.length)] : undefined,
    killAfterMs: below(KILL_WITHIN_MS),
    restart: restartEvery !== undefined && number % restartEvery === restartEvery - 1,
  }));
}
