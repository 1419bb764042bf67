// Limits attempts across all hosts of a fleet. Each host first counts in memory, which can refuse an attempt without a
// query. An attempt that is admitted in memory is also counted in the database. If no other host is known (`isAlone`),
// or if the database does not respond, the host counts in memory only.
import { createHash } from 'node:crypto';
import type { AttemptKey, AttemptRows, CountedAttempt } from '../../engines/store/rows/attempts.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { Tally, type TallyOptions, tooManyAttempts } from './tally.ts';

const ROWS_MAX = 100_000;
const SWEEP_INTERVAL_MS = 60_000;
/**
 * After the database has refused an attempt, further attempts are refused for this long without another query. The time
 * is short, because an attempt that succeeds is taken back, and another attempt is then allowed.
 */
const REFUSAL_REPEAT_MS = 1_000;
/** Maximum number of names whose refusal is remembered. */
const REFUSALS_MAX = 10_000;

/** Takes back a counted attempt. */
export type TakeBack = () => Promise<void>;

export interface SharedTallyOptions extends TallyOptions {
  /** The name of the limit in the database, such as `sign_in.address`. */
  readonly name: string;
}

export interface SharedTalliesParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: AttemptRows;
  readonly isAlone: () => boolean;
}

export class SharedTallies {
  readonly #parts: SharedTalliesParts;
  #sweptMs: number;

  constructor(parts: SharedTalliesParts) {
    this.#parts = parts;
    this.#sweptMs = parts.clock.monotonicMs();
  }

  of(options: SharedTallyOptions): SharedTally {
    return new SharedTally(options, this.#parts.clock, {
      count: name => this.#count(options, name),
      takeBack: (name, at) => this.#parts.rows.takeBack(name, at).catch(error => this.#logFailure(error)),
    });
  }

  /** Counts an attempt in the database. Returns undefined if the attempt is counted only on this host. */
  async #count(options: SharedTallyOptions, name: AttemptKey): Promise<CountedAttempt | undefined> {
    const { rows, isAlone } = this.#parts;
    if (isAlone()) return undefined;
    try {
      await this.#sweepIfDue();
      return await rows.count(name, options);
    } catch (error) {
      this.#logFailure(error);
      return undefined;
    }
  }

  async #sweepIfDue(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#sweptMs < SWEEP_INTERVAL_MS) return;
    this.#sweptMs = nowMs;
    await this.#parts.rows.sweep(ROWS_MAX);
  }

  #logFailure(error: unknown): void {
    this.#parts.log.warn('attempts.not_shared', { reason: reason(error) });
  }
}

interface FleetCounter {
  count(name: AttemptKey): Promise<CountedAttempt | undefined>;
  takeBack(name: AttemptKey, at: string): Promise<void>;
}

export class SharedTally {
  readonly #options: SharedTallyOptions;
  readonly #clock: Clock;
  readonly #fleetCounter: FleetCounter;
  readonly #localTally: Tally;
  /** Recent refusals by the database, by name, oldest first. */
  readonly #refusals = new Map<string, { readonly atMs: number; readonly waitMs: number }>();

  constructor(options: SharedTallyOptions, clock: Clock, counter: FleetCounter) {
    this.#options = options;
    this.#clock = clock;
    this.#fleetCounter = counter;
    this.#localTally = new Tally(options, clock);
  }

  /** Counts an attempt before it is made, so that concurrent attempts are counted. Throws `rate_limited`. */
  async take(name: string): Promise<TakeBack> {
    this.#assertNotRefused(name);
    const takeBackLocal = this.#localTally.take(name);
    const attemptKey = { tally: this.#options.name, digest: createHash('sha256').update(name).digest() };
    const response = await this.#fleetCounter.count(attemptKey);
    if (response && 'waitMs' in response) {
      takeBackLocal();
      this.#noteRefused(name, response.waitMs);
      throw tooManyAttempts(this.#options, response.waitMs);
    }
    return async () => {
      takeBackLocal();
      if (response) await this.#fleetCounter.takeBack(attemptKey, response.at);
    };
  }

  #assertNotRefused(name: string): void {
    const recentRefusal = this.#refusals.get(name);
    if (!recentRefusal) return;
    const elapsedMs = this.#clock.monotonicMs() - recentRefusal.atMs;
    if (elapsedMs < REFUSAL_REPEAT_MS) throw tooManyAttempts(this.#options, recentRefusal.waitMs - elapsedMs);
    this.#refusals.delete(name);
  }

  #noteRefused(name: string, waitMs: number): void {
    this.#refusals.set(name, { atMs: this.#clock.monotonicMs(), waitMs });
    const [oldest] = this.#refusals.keys();
    if (oldest !== undefined && this.#refusals.size > REFUSALS_MAX) this.#refusals.delete(oldest);
  }
}

/**
 * Counts an attempt in each tally, or in none if one of them refuses. The returned function takes the attempt back from
 * all of them. Pass the widest tally first: a caller who has used it up then adds no rows for the others.
 */
export async function takeAll(...countedNames: ReadonlyArray<readonly [SharedTally, string]>): Promise<TakeBack> {
  const takeBacks: TakeBack[] = [];
  const undoAttempts = async (): Promise<void> => {
    for (const one of takeBacks) await one();
  };
  try {
    for (const [tally, name] of countedNames) takeBacks.push(await tally.take(name));
    return undoAttempts;
  } catch (error) {
    await undoAttempts();
    throw error;
  }
}
