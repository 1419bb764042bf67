// The random plan for each cycle of a churn test (churn.ts), drawn from a seed in advance. The same seed gives the same
// plan, regardless of how the cycles overlap.
import { createRandomGenerator } from '../harness/random.ts';

const KILLS = ['starting', 'browser', 'renderer', 'bwrap', 'timeout'] as const;
export type Kill = (typeof KILLS)[number];

export interface Cycle {
  readonly number: number;
  readonly client: 'playwright' | 'raw';
  readonly keepAlive: boolean;
  readonly kill: Kill | undefined;
  /**
   * When the process is killed, measured from the response to the create request. At that time the client is
   * connecting, working or disconnected.
   */
  readonly killAfterMs: number;
  /** Whether the server is killed and restarted while the client of this cycle is working. */
  readonly restart: boolean;
}

const KILL_DELAY_MS_MAX = 300;

export interface PlanOptions {
  readonly seed: number;
  readonly cycles: number;
  /** On average, one of `killEvery` cycles kills a process. */
  readonly killEvery: number;
  /** One of every `restartEvery` cycles kills the server. If absent, the server is never killed. */
  readonly restartEvery?: number;
}

export function planOf({ seed, cycles, killEvery, restartEvery }: PlanOptions): readonly Cycle[] {
  const random = createRandomGenerator(seed);
  const randomBelow = (end: number): number => Math.floor(random() * end);
  return Array.from({ length: cycles }, (_, number) => ({
    number,
    client: randomBelow(2) === 0 ? 'playwright' : 'raw',
    keepAlive: randomBelow(2) === 0,
    kill: randomBelow(killEvery) === 0 ? KILLS[randomBelow(KILLS.length)] : undefined,
    killAfterMs: randomBelow(KILL_DELAY_MS_MAX),
    restart: restartEvery !== undefined && number % restartEvery === restartEvery - 1,
  }));
}
