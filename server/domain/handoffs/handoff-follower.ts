// Waits for hand-offs to change or to end, and for people to give control back.
import type { HandoffRow, HandoffRows } from '../../engines/store/rows/handoffs.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import { COMMAND_WAIT_MAX_MS } from './agent-queue.ts';
import { handoffClaimed } from './faults.ts';
import type { Lease } from './lease.ts';
import { isOpen } from './view.ts';

/** Changes on another host are detected by reading the row at this interval. */
const POLL_INTERVAL_MS = 2_000;

export interface HandoffFollowerParts {
  readonly rows: Pick<HandoffRows, 'get'>;
  /** Returns undefined if the session is not running on this host. */
  readonly leaseOf: (session: SessionId) => Pick<Lease, 'control' | 'onChange'> | undefined;
  readonly clock: Clock;
}

export class HandoffFollower {
  readonly #parts: HandoffFollowerParts;

  constructor(parts: HandoffFollowerParts) {
    this.#parts = parts;
  }

  /** Returns the row once its status has changed, or the current row after `waitMs`. */
  async waitForChange(row: HandoffRow, waitMs: number, signal: AbortSignal): Promise<HandoffRow> {
    return this.#waitUntil(row, waitMs, signal, latest => !isOpen(latest) || latest.status !== row.status);
  }

  /**
   * Returns the row once the hand-off has ended, or the current row after `waitMs`. By default, waits as long as the
   * hand-off is open.
   */
  async waitForEnd(row: HandoffRow, signal: AbortSignal, waitMs = Number.POSITIVE_INFINITY): Promise<HandoffRow> {
    return this.#waitUntil(row, waitMs, signal, latest => !isOpen(latest));
  }

  /**
   * Resolves when no person has control of the session.
   * @throws Fault `handoff_claimed` if a person still has control after the maximum time for which input waits.
   */
  async waitUntilReturned(session: SessionId, signal: AbortSignal): Promise<void> {
    const { clock, leaseOf } = this.#parts;
    const deadlineMs = clock.monotonicMs() + COMMAND_WAIT_MAX_MS;
    for (;;) {
      // Checked first: a service that is stopping has no lease, which would look as if control had been given back.
      signal.throwIfAborted();
      const control = leaseOf(session)?.control;
      if (!control) return;
      const remainingMs = deadlineMs - clock.monotonicMs();
      if (remainingMs <= 0) throw handoffClaimed({ id: control.handoffId, sessionId: session });
      await this.#sleepUntilChange(session, remainingMs, signal);
    }
  }

  /** @throws Fault `handoff_claimed` if a person has control of the session now. */
  assertNotClaimed(session: SessionId): void {
    const control = this.#parts.leaseOf(session)?.control;
    if (control) throw handoffClaimed({ id: control.handoffId, sessionId: session });
  }

  async #waitUntil(
    row: HandoffRow,
    waitMs: number,
    signal: AbortSignal,
    isExpected: (now: HandoffRow) => boolean,
  ): Promise<HandoffRow> {
    const { rows, clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + waitMs;
    for (let currentRow = row; ; ) {
      const remainingMs = deadlineMs - clock.monotonicMs();
      if (isExpected(currentRow) || remainingMs <= 0 || signal.aborted) return currentRow;
      await this.#sleepUntilChange(currentRow.sessionId, Math.min(remainingMs, POLL_INTERVAL_MS), signal);
      currentRow = (await rows.get(row.applicationId, row.id)) ?? currentRow;
    }
  }

  async #sleepUntilChange(session: SessionId, ms: number, signal: AbortSignal): Promise<void> {
    const wakeController = new AbortController();
    const subscription = this.#parts.leaseOf(session)?.onChange(() => wakeController.abort());
    await this.#parts.clock.sleep(ms, AbortSignal.any([wakeController.signal, signal])).catch(() => {});
    subscription?.close();
  }
}
