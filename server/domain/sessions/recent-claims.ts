// Counts the creates that recently requested a warm browser. Above a threshold, demand counts as continuous, and
// browsers are started in advance even while sessions are being started.
import type { Clock } from '../../kit/clock.ts';

const WINDOW_MS = 10_000;
/**
 * Fewer claims than this may come from a person, or from a program that creates a few sessions and then works with
 * them.
 */
const CONTINUOUS_CLAIMS_MIN = 5;

export class RecentClaims {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Times of the creates, oldest first, at most CONTINUOUS_CLAIMS_MIN. */
  #claimTimesMs: readonly number[] = [];

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  add(): void {
    this.#claimTimesMs = [...this.#claimTimesMs, this.#clock.monotonicMs()].slice(-CONTINUOUS_CLAIMS_MIN);
  }

  get areContinuous(): boolean {
    const [oldest] = this.#claimTimesMs;
    return (
      oldest !== undefined &&
      this.#claimTimesMs.length === CONTINUOUS_CLAIMS_MIN &&
      this.#clock.monotonicMs() - oldest < WINDOW_MS
    );
  }
}
