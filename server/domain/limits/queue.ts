// Creates that wait for admission. Each application has one bounded queue, first in, first out, and the applications
// take turns when a slot becomes free. The queue makes no decision: it repeats the attempt of the create at its head.
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { TurnQueue } from '../../kit/turns.ts';
import { fault } from '../faults.ts';
import { type Refusal, refusal, type WaitDetails } from './refusals.ts';

/** Slots freed by other processes are noticed within this time. */
const RETRY_INTERVAL_MS = 1_000;

export type AttemptResult<T> = { readonly got: T } | { readonly refused: Refusal };
export type Outcome<T> =
  | { readonly got: T; readonly waitedMs: number }
  | { readonly refused: Refusal; readonly waited?: WaitDetails };

export interface QueueRequest<T> {
  readonly application: ApplicationId;
  readonly attempt: () => Promise<AttemptResult<T>>;
  /** If absent, the create does not wait. */
  readonly waitMs?: number;
  /** The maximum number of creates of this application that may wait. */
  readonly maxWaiting: () => Promise<number>;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

interface Queue<T> {
  readonly application: ApplicationId;
  readonly waiters: Waiter<T>[];
  /** The latest refusal of the create at the head. */
  latestRefusal: Refusal;
}

interface Waiter<T> {
  readonly queue: Queue<T>;
  readonly attempt: () => Promise<AttemptResult<T>>;
  readonly sinceMs: number;
  readonly outcome: PromiseWithResolvers<Outcome<T>>;
  /**
   * Whether an attempt for this create is running. A timeout or disconnect during the attempt takes effect only if the
   * attempt is refused.
   */
  isTrying: boolean;
  leave?: () => void;
}

export class AdmissionQueue<T> {
  readonly #clock: Clock;
  /**
   * The queues, in the order in which the applications take turns: an application whose create was admitted moves to
   * the end.
   */
  readonly #queues = new Map<ApplicationId, Queue<T>>();
  readonly #arrivals = new TurnQueue<ApplicationId>();
  readonly #closeController = new AbortController();
  #retryLoop: Promise<void> | undefined;
  #isServing = false;
  #mustServeAgain = false;
  /** Incremented whenever a slot may have become free. */
  #changeCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return [...this.#queues.values()].reduce((sum, { waiters }) => sum + waiters.length, 0);
  }

  waitingOf(application: ApplicationId): number {
    return this.#queues.get(application)?.waiters.length ?? 0;
  }

  /**
   * Makes an attempt at once, unless another create is ahead. Makes further attempts while the create waits. A later
   * create that needs the same slot is not admitted first. Rejects if the caller disconnects, if an attempt rejects, or
   * if the queue is closed.
   */
  async enter(request: QueueRequest<T>): Promise<Outcome<T>> {
    const sinceMs = this.#clock.monotonicMs();
    // The create is attempted and queued in one step, so that creates wait in the order in which they were refused.
    const arrival = await this.#arrivals.run(request.application, () => this.#arrive(request, sinceMs));
    return 'waiter' in arrival ? this.#wait(request, arrival.waiter, arrival.waitMs) : arrival;
  }

  /** Called when a slot may be free because a session ended or a limit was raised. */
  noteFreeSlot(): void {
    this.#changeCount++;
    if (this.#queues.size > 0) void this.#serve();
  }

  /** Rejects all waiting creates. From now on, no create waits. */
  close(reason: () => Error): void {
    this.#closeController.abort(new Error('the queue is closing'));
    for (const { waiters } of [...this.#queues.values()])
      for (const waiter of [...waiters]) this.#removeWaiter(waiter, () => waiter.outcome.reject(reason()));
  }

  async #arrive(
    request: QueueRequest<T>,
    sinceMs: number,
  ): Promise<Outcome<T> | { readonly waiter: Waiter<T>; readonly waitMs: number }> {
    const { application, attempt, waitMs, maxWaiting, signal } = request;
    if (signal.aborted) throw callerDisconnected();
    const previousChangeCount = this.#changeCount;
    const earlierRefusal = this.#refusalAhead(application);
    const attemptResult: AttemptResult<T> = earlierRefusal ? { refused: earlierRefusal } : await attempt();
    if ('got' in attemptResult) return { got: attemptResult.got, waitedMs: 0 };
    if (waitMs === undefined) return attemptResult;
    const max = await maxWaiting();
    if (signal.aborted) throw callerDisconnected();
    if (this.#closeController.signal.aborted) return attemptResult;
    const waitingCount = this.waitingOf(application);
    if (waitingCount >= max) return { refused: refusal('line', max, waitingCount) };
    const waiter = this.#join(application, attempt, attemptResult.refused, sinceMs);
    // The refusal may already be outdated, so the attempt is repeated now instead of at the next retry.
    if (earlierRefusal || previousChangeCount !== this.#changeCount) void this.#serve();
    return { waiter, waitMs };
  }

  /**
   * Returns the refusal of a create that is ahead of a new one. This is a create of the same application, or a create
   * of any application if it is waiting for a slot of this host.
   */
  #refusalAhead(application: ApplicationId): Refusal | undefined {
    const ownQueue = this.#queues.get(application);
    if (ownQueue) return ownQueue.latestRefusal;
    for (const { latestRefusal: refused } of this.#queues.values()) if (refused.why === 'host') return refused;
    return undefined;
  }

  #join(application: ApplicationId, attempt: Waiter<T>['attempt'], refused: Refusal, sinceMs: number): Waiter<T> {
    const queue = this.#queues.get(application) ?? { application, waiters: [], latestRefusal: refused };
    const waiter: Waiter<T> = { queue, attempt, sinceMs, outcome: Promise.withResolvers(), isTrying: false };
    queue.waiters.push(waiter);
    this.#queues.set(application, queue);
    this.#retryLoop ??= this.#retryWhileWaiting();
    return waiter;
  }

  async #wait({ signal }: QueueRequest<T>, waiter: Waiter<T>, waitMs: number): Promise<Outcome<T>> {
    const timerController = new AbortController();
    const onDisconnect = (): void => this.#removeWaiter(waiter, () => waiter.outcome.reject(callerDisconnected()));
    const giveUp = (): void => this.#removeWaiter(waiter, () => waiter.outcome.resolve(this.#refusalOf(waiter)));
    signal.addEventListener('abort', onDisconnect, { once: true });
    this.#clock.sleep(waitMs, timerController.signal).then(giveUp, () => {});
    try {
      return await waiter.outcome.promise;
    } finally {
      signal.removeEventListener('abort', onDisconnect);
      timerController.abort(new Error('no longer waiting'));
    }
  }

  #removeWaiter(waiter: Waiter<T>, settle: () => void): void {
    const leave = (): void => {
      settle();
      this.#remove(waiter);
    };
    if (waiter.isTrying) waiter.leave ??= leave;
    else leave();
  }

  #refusalOf(waiter: Waiter<T>): Outcome<T> {
    const { latestRefusal: refused, waiters } = waiter.queue;
    const position = waiters.indexOf(waiter) + 1;
    return { refused, waited: { waitedMs: this.#waitedMs(waiter), position, waiting: waiters.length } };
  }

  #waitedMs({ sinceMs }: Waiter<T>): number {
    return Math.round(this.#clock.monotonicMs() - sinceMs);
  }

  #remove(waiter: Waiter<T>): void {
    const { application, waiters } = waiter.queue;
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
    if (waiters.length === 0 && this.#queues.get(application) === waiter.queue) this.#queues.delete(application);
  }

  async #retryWhileWaiting(): Promise<void> {
    while (this.#queues.size > 0 && !this.#closeController.signal.aborted) {
      await this.#clock.sleep(RETRY_INTERVAL_MS, this.#closeController.signal).catch(() => {});
      await this.#serve();
    }
    this.#retryLoop = undefined;
  }

  /**
   * Serves the queues. To keep the order, only one round runs at a time. If this method is called during a round,
   * another round follows.
   */
  async #serve(): Promise<void> {
    this.#mustServeAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    while (this.#mustServeAgain) {
      this.#mustServeAgain = false;
      await this.#serveRound();
    }
    this.#isServing = false;
  }

  /** Attempts the create at the head of each queue in turn, until each head has been refused or no slot is free. */
  async #serveRound(): Promise<void> {
    const refusedApplications = new Set<ApplicationId>();
    for (;;) {
      const queue = [...this.#queues.values()].find(({ application }) => !refusedApplications.has(application));
      const head = queue?.waiters[0];
      if (!queue || !head) return;
      if (await this.#try(queue, head)) continue;
      refusedApplications.add(queue.application);
      if (queue.latestRefusal.why === 'host') return;
    }
  }

  /**
   * Attempts the create at the head of a queue. If the attempt is refused, returns false, and the create stays at the
   * head.
   */
  async #try(queue: Queue<T>, head: Waiter<T>): Promise<boolean> {
    head.isTrying = true;
    try {
      const attemptResult = await head.attempt();
      if ('refused' in attemptResult) {
        queue.latestRefusal = attemptResult.refused;
        return false;
      }
      this.#remove(head);
      this.#moveToEnd(queue);
      head.outcome.resolve({ got: attemptResult.got, waitedMs: this.#waitedMs(head) });
    } catch (error) {
      this.#remove(head);
      head.outcome.reject(error);
    } finally {
      head.isTrying = false;
      head.leave?.();
    }
    return true;
  }

  #moveToEnd(queue: Queue<T>): void {
    if (this.#queues.delete(queue.application)) this.#queues.set(queue.application, queue);
  }
}

/** This error reaches no caller, because the caller has disconnected. */
const callerDisconnected = (): Error => fault('capacity', 'The caller disconnected. No session was created.');
