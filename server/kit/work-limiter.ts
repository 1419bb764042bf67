// Limits concurrent work of one kind, per session, per application and for the process. Work beyond the limits waits in
// a queue of bounded length, for a bounded time.
import { type Bounds, type Owner, type Share, Totals } from './totals.ts';
import { WaitExpired, withTimeout } from './wait.ts';

export interface WorkLimits {
  /** The name of the work in error messages, for example "unpack an extension". */
  readonly name: string;
  readonly runningMax: Bounds;
  /** The maximum number of operations that wait, of all sessions and applications together. */
  readonly waitingMax: number;
  /** The maximum time that an operation waits. */
  readonly withinMs: number;
}

export class WorkLimitReached extends Error {
  override readonly name = 'WorkLimitReached';
  constructor(workName: string, explanation: string) {
    super(`cannot ${workName} now: ${explanation}`);
  }
}

export class WorkLimiter {
  readonly #limits: WorkLimits;
  readonly #totals: Totals;
  /** Waiting work in order of arrival: for each share, the function that starts its work. */
  readonly #waiters = new Map<Share, () => void>();

  constructor(limits: WorkLimits) {
    this.#limits = limits;
    this.#totals = new Totals(limits.runningMax);
  }

  /**
   * Runs the work as soon as the limits allow it. Rejects with `WorkLimitReached` if the queue is full or the wait
   * takes too long.
   */
  async run<T>(owner: Owner, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const share = this.#totals.open(owner);
    try {
      if (share.take(1)) await this.#wait(share, signal);
      return await work();
    } finally {
      share.close();
      this.#admitWaiting();
    }
  }

  async #wait(share: Share, signal: AbortSignal | undefined): Promise<void> {
    const { name, waitingMax, withinMs } = this.#limits;
    if (this.#waiters.size >= waitingMax)
      throw new WorkLimitReached(name, `${waitingMax} operations are already waiting`);
    const admission = Promise.withResolvers<void>();
    this.#waiters.set(share, admission.resolve);
    try {
      await withTimeout(withinMs, `a place to ${name}`, () => admission.promise, signal);
    } catch (error) {
      throw error instanceof WaitExpired
        ? new WorkLimitReached(name, `the operation did not start within ${withinMs} ms`)
        : error;
    } finally {
      this.#waiters.delete(share);
    }
  }

  /** Starts the work that is waiting, except work whose session or application has reached its limit. */
  #admitWaiting(): void {
    for (const [share, begin] of this.#waiters) {
      if (share.take(1)) continue;
      this.#waiters.delete(share);
      begin();
    }
  }
}
