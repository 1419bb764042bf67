// The transactions of the lease of one session. Each transaction locks the fence, records the end of a lease or request
// whose time has already run out, and makes its change.
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { AtomicTables } from '../../engines/store/store.ts';
import type { HandoffId } from '../../kit/ids.ts';
import type { AuditSource } from '../audit/audit.ts';
import { notFound } from '../faults.ts';
import { handoffEnded } from './faults.ts';
import type { LeaseNotifier } from './lease-notifier.ts';
import { BY_SERVICE, type LeasedSession, type LeaseParts } from './lease-parts.ts';

/** The fence of the session, locked until the transaction ends. */
export interface LockedFence {
  readonly fence: number;
  /** Whether the session is running and is not ending. */
  readonly runs: boolean;
}

type OnCommitted<T> = (result: T) => unknown;
type Work<T> = (trx: AtomicTables, locked: LockedFence, open: HandoffRow | undefined) => Promise<T>;

export class LeaseChanges {
  readonly #parts: LeaseParts;
  readonly #session: Pick<LeasedSession, 'id' | 'applicationId'>;
  readonly #notifier: LeaseNotifier;
  /** Changes are made one after another, so that the state in memory is always the state of the last commit. */
  #lastChange: Promise<unknown> = Promise.resolve();
  #hasLeft = false;

  constructor(parts: LeaseParts, session: LeasedSession, notifier: LeaseNotifier) {
    this.#parts = parts;
    this.#session = session;
    this.#notifier = notifier;
  }

  /**
   * Stops the handling of leases and requests whose time has run out. Called when the session has ended, or when it is
   * left to the next process, which then handles them.
   */
  leave(): void {
    this.#hasLeft = true;
  }

  /** Makes a change. `onCommitted` is called with the result, and awaited, before the next change begins. */
  make<T>(work: Work<T>, onCommitted: OnCommitted<T> = () => {}): Promise<T> {
    return this.#runInTurn(async (trx, locked, open) => {
      if (!open || this.#hasLeft || !isOver(open, this.#parts.clock.now())) return work(trx, locked, open);
      const settlement = await this.#settleOverdue(trx, locked.fence, open);
      return work(trx, { ...locked, fence: settlement.fence }, settlement.open);
    }, onCommitted);
  }

  /** Like `make`, but for a change that itself ends a hand-off whose time is over. */
  makeEnd<T>(work: Work<T>, onCommitted: OnCommitted<T> = () => {}): Promise<T> {
    return this.#runInTurn(work, onCommitted);
  }

  #runInTurn<T>(work: Work<T>, onCommitted: OnCommitted<T>): Promise<T> {
    const { id, applicationId } = this.#session;
    const change = async (): Promise<T> => {
      const result = await this.#parts.store.atomically(async trx => {
        const lockedFence = await trx.controls.lockFence(applicationId, id);
        if (!lockedFence) throw notFound('Session', id);
        return work(trx, lockedFence, await trx.handoffs.findOpen(id));
      });
      await onCommitted(result);
      return result;
    };
    const changeResult = this.#lastChange.then(change);
    this.#lastChange = changeResult.catch(() => {});
    return changeResult;
  }

  /** Ends a lease or request whose time has run out, if its end has not been recorded yet. */
  async #settleOverdue(
    trx: AtomicTables,
    fence: number,
    open: HandoffRow,
  ): Promise<{ readonly fence: number; readonly open: HandoffRow | undefined }> {
    if (open.status === 'claimed' && open.origin !== 'viewer') {
      const row = await this.returnToQueue(trx, fence, open, BY_SERVICE);
      return { fence: row.fence, open: row.status === 'requested' ? row : undefined };
    }
    await trx.handoffs.change(open.id, { ...endedFields('expired', this.#parts.clock.now()), fence: fence + 1 });
    await trx.controls.setFence(this.#session.id, fence + 1);
    return { fence: fence + 1, open: undefined };
  }

  /** Makes the hand-off wait for a person again, or ends it if its time is over. */
  async returnToQueue(trx: AtomicTables, fence: number, open: HandoffRow, source: AuditSource): Promise<HandoffRow> {
    const now = this.#parts.clock.now();
    const isExpired = open.expiresAt <= now;
    const leaseFields = {
      ...{ leaseHash: null, leaseExpiresAt: null, holder: null, holderSession: null, fence: fence + 1 },
      controlUntil: now,
    };
    const change = isExpired
      ? { ...leaseFields, ...endedFields('expired', now) }
      : { ...leaseFields, status: 'requested' as const };
    const row = await trx.handoffs.change(open.id, change);
    if (!row) throw notFound('Hand-off', open.id);
    await trx.controls.setFence(this.#session.id, row.fence);
    await this.#notifier.audit(trx, isExpired ? 'handoff.expired' : 'handoff.returned', row, source);
    return row;
  }

  /** Returns the error for a hand-off that is not the open hand-off of the session. */
  async notOpenError(trx: AtomicTables, id: HandoffId): Promise<Error> {
    const row = await trx.handoffs.get(this.#session.applicationId, id);
    return row ? handoffEnded(row) : notFound('Hand-off', id);
  }
}

const isOver = ({ leaseExpiresAt, expiresAt }: HandoffRow, now: Date): boolean => (leaseExpiresAt ?? expiresAt) <= now;

export const isHeld = (open: HandoffRow | undefined, id: HandoffId, fence: number): open is HandoffRow =>
  open?.id === id && open.fence === fence && open.status === 'claimed';

/** The fields that change when a hand-off ends. */
export const endedFields = (status: HandoffRow['status'], endedAt: Date) => ({
  ...{ status, endedAt, leaseHash: null, leaseExpiresAt: null, claimHash: null, holder: null, holderSession: null },
});
