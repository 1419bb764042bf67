// The line: the queue of session creates that are waiting in a fleet, one for all hosts. The host to which the caller
// is connected keeps the place of the create in a row, and tries the create on a host with room when its turn comes. A
// change that may allow a create to be admitted is announced to all hosts by NOTIFY. Each host also checks its waiting
// creates every second.
import type { LineRows, WaitingCreate } from '../../engines/store/rows/line.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';
import { type Refusal, refusal, type WaitDetails } from '../limits/refusals.ts';
import type { Fleet } from './fleet.ts';
import type { QueueTicket } from './line-ticket.ts';
import { nextInLine } from './next-in-line.ts';

/**
 * Interval at which waiting creates are checked and their rows refreshed. The store ignores rows that have not been
 * refreshed for five seconds.
 */
const RETRY_INTERVAL_MS = 1_000;
/** Several sessions that end within this time are announced together. */
const GATHER_INTERVAL_MS = 20;
const ROWS_PER_ROUND_MAX = 5_000;

export type LineAttempt<T> = (ticket: QueueTicket) => Promise<{ readonly got: T } | { readonly refused: Refusal }>;

export type LineOutcome<T> = { readonly got: T } | { readonly refused: Refusal; readonly waited?: WaitDetails };

export interface LineRequest<T> {
  readonly application: ApplicationId;
  /** If set, only a host in this region can be used. */
  readonly region?: string | undefined;
  /** Why the create was not admitted at once. */
  readonly refused: Refusal;
  readonly waitMs: number;
  /** Maximum number of waiting creates of the application. */
  readonly maxWaiting: number;
  readonly attempt: LineAttempt<T>;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

export interface LineParts extends Pick<Runtime, 'host' | 'clock' | 'log'> {
  readonly rows: LineRows;
  readonly fleet: Pick<Fleet, 'isAlone' | 'refreshHosts' | 'roomByRegion'>;
}

interface Waiter {
  readonly row: Omit<WaitingCreate, 'why' | 'refused'>;
  readonly sinceMs: number;
  /** Resolves to the refusal, or undefined if the create was admitted. */
  readonly attempt: (ticket: QueueTicket) => Promise<Refusal | undefined>;
  readonly reject: (error: unknown) => void;
  lastRefusal: Refusal;
  /**
   * Whether an attempt is in progress. A timeout or disconnect during an attempt takes effect only if the attempt is
   * refused.
   */
  isTrying: boolean;
  leave?: () => void;
}

export class Line implements Closeable {
  readonly #parts: LineParts;
  /** The waiters whose callers are connected to this host. */
  readonly #waiters = new Map<number, Waiter>();
  readonly #closeController = new AbortController();
  #keepLoop: Promise<void> | undefined;
  #isServing = false;
  #mustServeAgain = false;
  #isNotifying = false;

  constructor(parts: LineParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** Waits until a host admits the create. Rejects if the caller disconnects, or if an attempt rejects. */
  async enter<T>(request: LineRequest<T>): Promise<LineOutcome<T>> {
    const { application, region = null, refused, maxWaiting, attempt, signal } = request;
    const { rows, host, clock } = this.#parts;
    if (this.#closeController.signal.aborted) return { refused };
    const sinceMs = clock.monotonicMs();
    const createFields = { applicationId: application, hostId: host, region };
    const joinedPlace = await rows.join({ ...createFields, why: refused.why, refused: { ...refused } }, maxWaiting);
    if ('waiting' in joinedPlace) return { refused: refusal('line', maxWaiting, joinedPlace.waiting) };
    if (this.#closeController.signal.aborted) {
      // `stop` was called during the query, and rejected only the waiters that existed at that time.
      await rows.leave(joinedPlace.place).catch(error => this.#logFailure(error));
      return { refused };
    }
    const { promise, resolve, reject } = Promise.withResolvers<LineOutcome<T>>();
    const waiter: Waiter = {
      ...{ row: { ...createFields, ...joinedPlace }, sinceMs, lastRefusal: refused, isTrying: false, reject },
      attempt: async ticket => {
        const attemptResult = await attempt(ticket);
        if ('refused' in attemptResult) return attemptResult.refused;
        resolve(attemptResult);
        return undefined;
      },
    };
    const giveUp = (): void => resolve(this.#refusalOf(waiter));
    this.#waiters.set(joinedPlace.place, waiter);
    try {
      this.#keepLoop ??= this.#refreshWhileWaiting();
      void this.serve(); // The refusal may be outdated already.
      this.#limitWait(waiter, request.waitMs, signal, giveUp, promise);
      return await promise;
    } finally {
      this.#waiters.delete(joinedPlace.place);
      await rows.leave(joinedPlace.place).catch(error => this.#logFailure(error));
      this.announceRoom();
    }
  }

  /**
   * Announces that creates may be admitted now. Called when a slot of this host may have become free, or when a limit
   * was raised.
   */
  announceRoom(): void {
    if (this.#parts.fleet.isAlone || this.#isNotifying || this.#closeController.signal.aborted) return;
    this.#isNotifying = true;
    void this.#announceAll();
  }

  /**
   * Tries to place the creates of this host whose turn has come. Only one round runs at a time. A call during a round
   * causes a second round.
   */
  async serve(): Promise<void> {
    this.#mustServeAgain = this.#waiters.size > 0;
    if (this.#isServing) return;
    this.#isServing = true;
    while (this.#mustServeAgain) {
      this.#mustServeAgain = false;
      await this.#serveRound().catch(error => this.#logFailure(error));
    }
    this.#isServing = false;
  }

  /** Returns the number of waiting creates of the application, over all hosts. */
  countWaiting(application: ApplicationId): Promise<number> {
    return this.#parts.rows.waitingOf(application);
  }

  /** Rejects all waiters on this host, and accepts no more. */
  stop(why: () => Error): void {
    this.#closeController.abort(new Error('the queue is closing'));
    for (const waiter of this.#waiters.values()) removeWaiter(waiter, () => waiter.reject(why()));
  }

  async close(): Promise<void> {
    this.stop(() => callerDisconnected());
    await this.#keepLoop;
  }

  /** Ends the wait after `waitMs`, or when the caller has disconnected. */
  #limitWait(
    waiter: Waiter,
    waitMs: number,
    signal: AbortSignal,
    giveUp: () => void,
    outcomePromise: Promise<unknown>,
  ): void {
    const timerController = new AbortController();
    const onDisconnect = (): void => removeWaiter(waiter, () => waiter.reject(callerDisconnected()));
    if (signal.aborted) onDisconnect();
    signal.addEventListener('abort', onDisconnect, { once: true });
    this.#parts.clock.sleep(waitMs, timerController.signal).then(
      () => removeWaiter(waiter, giveUp),
      () => {},
    );
    const stopLimiting = (): void => {
      signal.removeEventListener('abort', onDisconnect);
      timerController.abort(new Error('no longer waiting'));
    };
    outcomePromise.then(stopLimiting, stopLimiting);
  }

  async #refusalOf({
    row,
    lastRefusal: refused,
    sinceMs,
  }: Waiter): Promise<{ refused: Refusal; waited?: WaitDetails }> {
    const waitedMs = this.#elapsedSince(sinceMs);
    const positionPromise = this.#parts.rows.positionOf(row.applicationId, row);
    return positionPromise.then(
      position => ({ refused, waited: { waitedMs, ...position } }),
      () => ({ refused }),
    );
  }

  async #refreshWhileWaiting(): Promise<void> {
    const { rows, clock } = this.#parts;
    while (this.#waiters.size > 0 && !this.#closeController.signal.aborted) {
      await clock.sleep(RETRY_INTERVAL_MS, this.#closeController.signal).catch(() => {});
      const currentWaiters = [...this.#waiters.values()];
      const rowOf = ({ row, lastRefusal: refused }: Waiter): WaitingCreate => ({
        ...row,
        why: refused.why,
        refused: { ...refused },
      });
      const idleRows = currentWaiters.filter(({ isTrying }) => !isTrying).map(rowOf);
      const tryingRows = currentWaiters.filter(({ isTrying }) => isTrying).map(rowOf);
      await rows.refresh(idleRows, tryingRows).catch(error => this.#logFailure(error));
      // If a waiter left during the refresh, its row may have been written again.
      const goneRows = idleRows.filter(({ place }) => !this.#waiters.has(place));
      for (const { place } of goneRows) await rows.leave(place).catch(error => this.#logFailure(error));
      await this.serve();
    }
    this.#keepLoop = undefined;
  }

  async #serveRound(): Promise<void> {
    const { rows, fleet } = this.#parts;
    if (this.#waiters.size === 0) return;
    await fleet.refreshHosts();
    const nextPlaces = nextInLine(await rows.list(ROWS_PER_ROUND_MAX), fleet.roomByRegion);
    for (const place of nextPlaces) {
      const waiter = this.#waiters.get(place);
      if (waiter && !waiter.isTrying) void this.#tryWaiter(waiter);
    }
  }

  async #tryWaiter(waiter: Waiter): Promise<void> {
    const { row, sinceMs } = waiter;
    waiter.isTrying = true;
    try {
      const ticket = { turn: row.turn, place: row.place, waitedMs: this.#elapsedSince(sinceMs) };
      waiter.lastRefusal = (await waiter.attempt(ticket)) ?? waiter.lastRefusal;
    } catch (error) {
      waiter.reject(error);
    } finally {
      waiter.isTrying = false;
      waiter.leave?.();
    }
  }

  async #announceAll(): Promise<void> {
    await this.#parts.clock.sleep(GATHER_INTERVAL_MS, this.#closeController.signal).catch(() => {});
    this.#isNotifying = false;
    await this.#parts.rows.announceMove().catch(error => this.#logFailure(error));
  }

  #elapsedSince(ms: number): number {
    return Math.round(this.#parts.clock.monotonicMs() - ms);
  }

  #logFailure(error: unknown): void {
    this.#parts.log.warn('fleet.line_failed', { reason: reason(error) });
  }
}

function removeWaiter(waiter: Waiter, settle: () => void): void {
  if (waiter.isTrying) waiter.leave ??= settle;
  else settle();
}

/** Nobody receives this error, because the caller has disconnected. */
const callerDisconnected = (): Error => fault('capacity', 'The caller disconnected. No session was created.');
