// Callers who would rather wait than be refused: one bounded first-come line for each application, and turns between the
// applications when room appears. It decides nothing: whoever is first asks the database again, and that answer counts.
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { callerLeft, lineRefusal, type Refusal, Refused } from './refusals.ts';
import { Turns } from './turns.ts';

/** Room that other processes make is seen within this. */
const LOOK_MS = 1_000;

export type Tried<T> = { readonly got: T } | { readonly refusal: Refusal };

export interface Wish<T> {
  readonly application: ApplicationId;
  /** Asks for room once. */
  readonly attempt: () => Promise<Tried<T>>;
  /** Absent: a refusal is taken at once. */
  readonly waitMs?: number;
  /** How many of this application may stand in line. */
  readonly maxWaiting: () => Promise<number>;
  /** Aborted when the caller hangs up. */
  readonly signal: AbortSignal;
}

interface Waiter<T> {
  readonly attempt: () => Promise<Tried<T>>;
  readonly sinceMs: number;
  readonly done: PromiseWithResolvers<T>;
  /** Its attempt is under way; who wants to leave meanwhile leaves with its outcome. */
  isTrying: boolean;
  leave?: () => void;
}

interface Queue<T> {
  readonly waiters: Waiter<T>[];
  /** What its head was told last. */
  refusal: Refusal;
}

export class WaitingLine<T> {
  readonly #clock: Clock;
  /** In the order of turns: who got room goes to the end. */
  readonly #queues = new Map<ApplicationId, Queue<T>>();
  readonly #arrivals = new Turns<ApplicationId>();
  readonly #closing = new AbortController();
  #looking: Promise<void> | undefined;
  #isServing = false;
  #serveAgain = false;
  /** Grows whenever room may have appeared. */
  #news = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return [...this.#queues.values()].reduce((sum, { waiters }) => sum + waiters.length, 0);
  }

  waitingOf(application: ApplicationId): number {
    return this.#queues.get(application)?.waiters.length ?? 0;
  }

  /** Room, at once or after standing in line; throws the refusal. A newcomer never overtakes who waits for the same room. */
  async admit(wish: Wish<T>): Promise<{ got: T; waitedMs: number }> {
    const sinceMs = this.#clock.monotonicMs();
    // Asking and joining are one turn, so that who is refused first stands before who is refused next.
    const arrived = await this.#arrivals.run(wish.application, () => this.#arrive(wish, sinceMs));
    if ('got' in arrived) return { got: arrived.got, waitedMs: 0 };
    const got = await this.#stand(wish, arrived.waiter, arrived.waitMs);
    return { got, waitedMs: Math.round(this.#clock.monotonicMs() - sinceMs) };
  }

  /** Room may have appeared: a session ended, or a limit was raised. */
  freed(): void {
    this.#news++;
    if (this.#queues.size > 0) void this.#serve();
  }

  /** Sends everybody away. */
  close(reason: () => Error): void {
    this.#closing.abort(new Error('the line is closing'));
    for (const application of [...this.#queues.keys()])
      for (const waiter of [...(this.#queues.get(application)?.waiters ?? [])])
        this.#sendAway(application, waiter, reason);
  }

  async #arrive(wish: Wish<T>, sinceMs: number): Promise<{ got: T } | { waiter: Waiter<T>; waitMs: number }> {
    if (wish.signal.aborted) throw callerLeft();
    const news = this.#news;
    const ahead = this.#ahead(wish.application);
    const tried: Tried<T> = ahead ? { refusal: ahead } : await wish.attempt();
    if ('got' in tried) return tried;
    if (wish.waitMs === undefined) throw new Refused(tried.refusal);
    const waiter = this.#join(wish, tried.refusal, await wish.maxWaiting(), sinceMs);
    // What the refusal was told from may be over: then nobody else would look for us.
    if (ahead || news !== this.#news) void this.#serve();
    return { waiter, waitMs: wish.waitMs };
  }

  /** What stands before a newcomer: others of its application, or anybody who waits for a slot of this host. */
  #ahead(application: ApplicationId): Refusal | undefined {
    const own = this.#queues.get(application);
    if (own) return own.refusal;
    for (const { refusal } of this.#queues.values()) if (refusal.why === 'host') return refusal;
    return undefined;
  }

  #join(wish: Wish<T>, refusal: Refusal, maxWaiting: number, sinceMs: number): Waiter<T> {
    if (wish.signal.aborted) throw callerLeft();
    if (this.#closing.signal.aborted) throw new Refused(refusal);
    const waiting = this.waitingOf(wish.application);
    if (waiting >= maxWaiting) throw new Refused(lineRefusal(maxWaiting, waiting));
    const waiter: Waiter<T> = { attempt: wish.attempt, sinceMs, done: Promise.withResolvers(), isTrying: false };
    const queue = this.#queues.get(wish.application) ?? { waiters: [], refusal };
    queue.waiters.push(waiter);
    this.#queues.set(wish.application, queue);
    this.#looking ??= this.#lookWhileWaiting();
    return waiter;
  }

  async #stand({ application, signal }: Wish<T>, waiter: Waiter<T>, waitMs: number): Promise<T> {
    const over = new AbortController();
    const hangUp = (): void => this.#sendAway(application, waiter, callerLeft);
    signal.addEventListener('abort', hangUp, { once: true });
    void this.#clock.sleep(waitMs, over.signal).then(
      () => this.#sendAway(application, waiter, () => this.#inVain(application, waiter)),
      () => {}, // it got room, or left
    );
    try {
      return await waiter.done.promise;
    } finally {
      signal.removeEventListener('abort', hangUp);
      over.abort(new Error('no longer in line'));
    }
  }

  #sendAway(application: ApplicationId, waiter: Waiter<T>, reason: () => Error): void {
    const leave = (): void => {
      const error = reason();
      this.#remove(application, waiter);
      waiter.done.reject(error);
    };
    if (waiter.isTrying) waiter.leave ??= leave;
    else leave();
  }

  /** The ordinary refusal, with where it stood. */
  #inVain(application: ApplicationId, waiter: Waiter<T>): Error {
    const queue = this.#queues.get(application);
    if (!queue) return callerLeft();
    return new Refused(queue.refusal, {
      waitedMs: Math.round(this.#clock.monotonicMs() - waiter.sinceMs),
      position: queue.waiters.indexOf(waiter) + 1,
      waiting: queue.waiters.length,
    });
  }

  #remove(application: ApplicationId, waiter: Waiter<T>): void {
    const waiters = this.#queues.get(application)?.waiters ?? [];
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
    if (waiters.length === 0) this.#queues.delete(application);
  }

  async #lookWhileWaiting(): Promise<void> {
    while (this.#queues.size > 0 && !this.#closing.signal.aborted) {
      await this.#clock.sleep(LOOK_MS, this.#closing.signal).catch(() => {});
      await this.#serve();
    }
    this.#looking = undefined;
  }

  /** One at a time, so that the order holds; a call meanwhile means another round. */
  async #serve(): Promise<void> {
    this.#serveAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    while (this.#serveAgain) {
      this.#serveAgain = false;
      await this.#round();
    }
    this.#isServing = false;
  }

  /** Turn by turn until each application's head was refused, or no slot is left for anybody. */
  async #round(): Promise<void> {
    const told = new Set<ApplicationId>();
    for (;;) {
      const turn = [...this.#queues].find(([application]) => !told.has(application));
      const [application, queue] = turn ?? [];
      const head = queue?.waiters[0];
      if (!application || !queue || !head) return;
      const refusal = await this.#try(application, queue, head);
      if (!refusal) continue;
      told.add(application);
      if (refusal.why === 'host') return;
    }
  }

  async #try(application: ApplicationId, queue: Queue<T>, head: Waiter<T>): Promise<Refusal | undefined> {
    head.isTrying = true;
    try {
      const tried = await head.attempt();
      if ('refusal' in tried) {
        queue.refusal = tried.refusal;
        return tried.refusal;
      }
      this.#remove(application, head);
      this.#toTheEnd(application);
      head.done.resolve(tried.got);
    } catch (error) {
      this.#remove(application, head);
      head.done.reject(error);
    } finally {
      head.isTrying = false;
      head.leave?.();
    }
    return undefined;
  }

  #toTheEnd(application: ApplicationId): void {
    const queue = this.#queues.get(application);
    if (!queue) return;
    this.#queues.delete(application);
    this.#queues.set(application, queue);
  }
}
