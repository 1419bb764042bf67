// How many creates asked for a warm browser just now. From some on, the demand counts as continuous: the next create is expected,
// so browsers are started ahead of it instead of when the machine is at rest.
import type { Clock } from '../../kit/clock.ts';

const WINDOW_MS = 10_000;
/** Fewer are a person, or a program that creates some sessions and then works with them. */
const CONTINUOUS_FROM = 5;

export class RecentClaims {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** When they came; oldest first, at most CONTINUOUS_FROM. */
  #atMs: readonly number[] = [];

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  add(): void {
    this.#atMs = [...this.#atMs, this.#clock.monotonicMs()].slice(-CONTINUOUS_FROM);
  }

  get areContinuous(): boolean {
    const [oldest] = this.#atMs;
    return (
      oldest !== undefined && this.#atMs.length === CONTINUOUS_FROM && this.#clock.monotonicMs() - oldest < WINDOW_MS
    );
  }
}
