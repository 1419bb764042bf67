// Control of one session by a person: a lease with a fence, stored in the open hand-off. Each session that is running
// on this host has one instance. The database transactions decide who has control.
import { randomUUID } from 'node:crypto';
import type { AuditAction } from '../../../contract/audit.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import type { HandoffChange, HandoffRow } from '../../engines/store/rows/handoffs.ts';
import { addMs } from '../../kit/clock.ts';
import type { HandoffId, KeyId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { withTimeout as inTime } from '../../kit/wait.ts';
import type { AuditSource, Detail } from '../audit/audit.ts';
import { notFound, sessionNotRunning } from '../faults.ts';
import { mint } from '../identity/credentials.ts';
import type { AgentInputMode, InputVerdict } from './agent-queue.ts';
import type { Control } from './control.ts';
import { handoffClaimed, handoffExists, staleFence } from './faults.ts';
import { endedFields, isHeld, LeaseChanges } from './lease-changes.ts';
import { eventFields, handoffFields, LeaseNotifier, type Notice, viewerOf } from './lease-notifier.ts';
import { BY_SERVICE, type Claimer, type HandoffReport, type LeasedSession, type LeaseParts } from './lease-parts.ts';
import { LeaseState } from './lease-state.ts';
import { TakenControl } from './taken-control.ts';

const SETTLE_MAX_MS = 2_000;
const CLOCK_ACTOR: Actor = { kind: 'clock' };

export class Lease {
  readonly #parts: LeaseParts;
  readonly #session: LeasedSession;
  readonly #agentInput: AgentInputMode;
  readonly #notifier: LeaseNotifier;
  readonly #changes: LeaseChanges;
  readonly #state: LeaseState;
  readonly #takenControl: TakenControl;
  readonly #settleListeners = new Set<() => Promise<void>>();

  /** `keyId` is the id of the agent key that created the session. */
  constructor(parts: LeaseParts, session: LeasedSession, agentInput: AgentInputMode, keyId?: KeyId) {
    const { clock } = parts;
    this.#parts = parts;
    this.#session = session;
    this.#agentInput = agentInput;
    this.#notifier = new LeaseNotifier(parts, session.id);
    this.#changes = new LeaseChanges(parts, session, this.#notifier);
    this.#state = new LeaseState({
      ...{ session, clock },
      onDue: row => void this.#handleDue(row),
      onFailed: error => this.#notifier.logWriteFailure(error),
    });
    const [state, changes, notifier] = [this.#state, this.#changes, this.#notifier];
    this.#takenControl = new TakenControl({ session, state, changes, notifier, clock, keyId });
  }

  /** Continues from the state that a previous process stored. */
  async adopt(row: HandoffRow | undefined): Promise<void> {
    if (row) await this.#state.adopt(row);
  }

  /** The open hand-off, including a hand-off that a viewer began by taking control. */
  get open(): HandoffRow | undefined {
    return this.#state.row;
  }

  /** A person's control, or undefined while the agent has control. */
  get control(): Control | undefined {
    return this.#state.control;
  }

  /** Whether a person was asked to take control. If so, the session is kept running, even without clients. */
  get wasRequested(): boolean {
    return this.#state.wasRequested;
  }

  /** Calls the listener when control or the open hand-off changes. */
  onChange(listener: () => void): { close(): void } {
    return this.#state.onChange(listener);
  }

  /** Calls the listener with each notice for the agent. */
  onNotice(listener: (notice: Notice) => void): { close(): void } {
    return this.#notifier.onNotice(listener);
  }

  /** Whether input that was sent under this fence may still be dispatched. */
  isFresh(fence: number): boolean {
    return this.#state.isFresh(fence);
  }

  /**
   * Registers a function that is called before the person gives up control, and that resolves when all input of the
   * person so far has been sent to the browser.
   */
  onSettling(onSettle: () => Promise<void>): { close(): void } {
    this.#settleListeners.add(onSettle);
    return { close: () => void this.#settleListeners.delete(onSettle) };
  }

  /**
   * Decides whether a command of the agent passes, is queued or is refused. Called only for commands that must not run
   * while a person has control.
   */
  judgeInput(method: string): InputVerdict {
    const { control, queue } = this.#state;
    if (!control) return 'pass';
    return queue.judge(method, this.#agentInput, control.wasRequested ? control.handoffId : undefined);
  }

  /** Called when the person in control opens a live view. Close the returned handle when that view closes. */
  attachView(): { close(): void } {
    return this.#state.attachView();
  }

  // ---- control that a viewer takes without being asked -------------------------------------------------------------

  /**
   * Gives control to a viewer. Undefined if another person has control, if a person was asked to take control, or if
   * the session is not running. The fence is stored before this method returns. A holder that takes control again gets
   * a higher fence.
   */
  take(holder: string): Promise<Control | undefined> {
    return this.#takenControl.take(holder);
  }

  /** Renews the lease of a viewer. False if control has ended. */
  renewTakenControl(control: Pick<Control, 'holder' | 'fence'>): Promise<boolean> {
    return this.#takenControl.renew(control);
  }

  /** Gives back the control of a viewer. If the hand-off was requested, it then waits to be claimed again. */
  async giveBack(fence: number): Promise<void> {
    if (this.control?.fence !== fence) return;
    if (this.#settleListeners.size > 0) await this.#waitForInput();
    if (this.control?.wasRequested) return this.#return(fence, { kind: 'viewer' }, BY_SERVICE);
    await this.#takenControl.end(fence, 'completed', 'control.given_back', { kind: 'viewer' });
  }

  // ---- hand-offs -------------------------------------------------------------------------------------------------------

  async request(row: HandoffRow, source: AuditSource, actor: Actor): Promise<HandoffRow> {
    const requestedRow = await this.#changes.make(
      async (trx, { fence, runs }, open) => {
        if (!runs) throw sessionNotRunning(this.#session.id, 'ending');
        if (open) throw handoffExists(open);
        const requestedHandoff = { ...row, fence };
        await trx.handoffs.insert(requestedHandoff);
        const details = { origin: row.origin, reason: row.reason };
        await this.#notifier.audit(trx, 'handoff.requested', requestedHandoff, source, details);
        return requestedHandoff;
      },
      asked => this.#state.set(asked),
    );
    this.#notifier.recordEvent(
      'handoff.requested',
      { ...eventFields(requestedRow), reason: requestedRow.reason },
      actor,
    );
    this.#notifyRequested(requestedRow);
    return requestedRow;
  }

  /** Claims a hand-off. Before this returns, the fence is committed and commands of the agent are blocked. */
  async claim(id: HandoffId, claimer: Claimer): Promise<{ row: HandoffRow; token: Secret }> {
    const token = mint('handoff_lease');
    const row = await this.#changes.make(
      async (trx, { fence, runs }, open) => {
        if (!open || open.id !== id) throw await this.#changes.notOpenError(trx, id);
        if (open.status === 'claimed') throw handoffClaimed(open);
        if (!runs) throw sessionNotRunning(this.#session.id, 'ending');
        const now = this.#parts.clock.now();
        const claimedHandoff = await trx.handoffs.change(id, {
          ...{ status: 'claimed', fence: fence + 1, holder: randomUUID(), holderKind: claimer.kind },
          ...{ holderId: claimer.id ?? null, holderSession: claimer.session ?? null, leaseHash: token.hash },
          ...{ claimedAt: now, controlUntil: null },
          leaseExpiresAt: addMs(now, 1000 * open.leaseSeconds),
        });
        if (!claimedHandoff) throw notFound('Hand-off', id);
        await trx.controls.setFence(this.#session.id, claimedHandoff.fence);
        await this.#notifier.audit(trx, 'handoff.claimed', claimedHandoff, claimer.source);
        return claimedHandoff;
      },
      claimedRow => this.#state.set(claimedRow),
    );
    try {
      await this.#state.openGuard(row);
    } catch (error) {
      await this.#return(row.fence, { kind: 'service' }, BY_SERVICE);
      throw error;
    }
    this.#notifier.recordEvent('handoff.claimed', { ...eventFields(row), by: claimer.kind }, viewerOf(row));
    this.#notifier.notifyAgents('Berth.handoffClaimed', handoffFields(row));
    return { row, token: token.text };
  }

  async renew(id: HandoffId, fence: number, source: AuditSource): Promise<HandoffRow> {
    const row = await this.#changes.make(
      async (trx, _, open) => {
        if (!isHeld(open, id, fence)) throw staleFence(id);
        const leaseExpiresAt = addMs(this.#parts.clock.now(), 1000 * open.leaseSeconds);
        const renewedRow = await trx.handoffs.change(id, { leaseExpiresAt });
        await this.#notifier.audit(trx, 'handoff.renewed', open, source);
        return renewedRow;
      },
      // Control may have ended while the change was being written.
      row => row && this.control?.fence === fence && this.#state.set(row),
    );
    if (!row) throw staleFence(id);
    this.#state.recordRenewal();
    return row;
  }

  async complete(id: HandoffId, fence: number, report: HandoffReport, source: AuditSource): Promise<HandoffRow> {
    const { outcome, ...rest } = report;
    if (this.control?.fence === fence) await this.#waitForInput();
    const row = await this.#end(id, fence, { status: outcome, ...rest }, 'handoff.completed', source, { outcome });
    this.#notifier.recordEvent('handoff.completed', { ...eventFields(row), outcome }, viewerOf(row));
    this.#notifier.notifyAgents('Berth.handoffComplete', { ...handoffFields(row), ...report });
    return row;
  }

  /** Cancels the open hand-off. The caller of this method has checked the permission. */
  async cancel(id: HandoffId, source: AuditSource, actor: Actor): Promise<HandoffRow> {
    const row = await this.#end(id, undefined, { status: 'cancelled' }, 'handoff.cancelled', source);
    this.#notifier.recordEvent('handoff.cancelled', eventFields(row), actor);
    this.#notifyEnded(row, 'cancelled');
    return row;
  }

  /** Gives the lease back on behalf of the person. The hand-off then waits to be claimed again. */
  async returnLease(id: HandoffId, fence: number, source: AuditSource): Promise<void> {
    if (this.open?.id !== id || this.control?.fence !== fence) throw staleFence(id);
    const actor = viewerOf(this.open);
    await this.#waitForInput();
    await this.#return(fence, actor, source);
  }

  /** Takes control away from a person who is no longer entitled to it. The hand-off then waits to be claimed again. */
  async takeBack(fence: number): Promise<void> {
    await this.#return(fence, CLOCK_ACTOR, BY_SERVICE);
  }

  // ---- ends ------------------------------------------------------------------------------------------------------------

  /**
   * Called when the session has ended or is left to the next process. If the session has ended, ends the open hand-off.
   */
  async close(hasEnded: boolean): Promise<void> {
    const row = this.open;
    this.#changes.leave();
    this.#state.stopWaiting();
    if (hasEnded && row) await this.#endWithSession(row).catch(error => this.#notifier.logWriteFailure(error));
    this.#state.close();
    this.#notifier.close();
  }

  async #endWithSession(row: HandoffRow): Promise<void> {
    const { id, origin } = row;
    await this.#changes.make(async (trx, { fence }, open) => {
      if (open?.id !== id) return;
      await trx.controls.setFence(this.#session.id, fence + 1);
      await trx.handoffs.change(id, { ...endedFields('session_ended', this.#parts.clock.now()), fence: fence + 1 });
    });
    if (origin !== 'viewer') this.#notifyEnded(row, 'session_ended');
  }

  async #handleDue(row: HandoffRow): Promise<void> {
    if (row.status === 'requested') return this.#expire(row.id);
    if (row.origin === 'viewer') return this.#takenControl.end(row.fence, 'expired', 'control.expired', CLOCK_ACTOR);
    await this.#return(row.fence, CLOCK_ACTOR, BY_SERVICE).catch(error => this.#endLocally(row, error));
  }

  /**
   * Ends the hand-off. If `fence` is given, ends it only while control is held under that fence. If `fence` is
   * undefined, ends it regardless of who has control.
   */
  async #end(
    id: HandoffId,
    fence: number | undefined,
    change: HandoffChange & { readonly status: HandoffRow['status'] },
    action: AuditAction,
    source: AuditSource,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<HandoffRow> {
    const make: LeaseChanges['make'] = (work, onCommitted) =>
      action === 'handoff.expired' ? this.#changes.makeEnd(work, onCommitted) : this.#changes.make(work, onCommitted);
    return make(
      async (trx, locked, open) => {
        if (fence !== undefined && !isHeld(open, id, fence)) throw staleFence(id);
        if (open?.id !== id) throw await this.#changes.notOpenError(trx, id);
        const endChange = {
          ...change,
          ...endedFields(change.status, this.#parts.clock.now()),
          fence: locked.fence + 1,
        };
        const row = await trx.handoffs.change(id, endChange);
        if (!row) throw notFound('Hand-off', id);
        await trx.controls.setFence(this.#session.id, endChange.fence);
        await this.#notifier.audit(trx, action, row, source, details);
        return row;
      },
      () => this.#state.set(undefined),
    );
  }

  /** Makes the hand-off wait for a person again, or ends it if its time is over. */
  async #return(fence: number, actor: Actor, source: AuditSource): Promise<void> {
    const row = await this.#changes.makeEnd(
      async (trx, locked, open) => {
        if (open?.fence !== fence || open.status !== 'claimed') return undefined;
        return this.#changes.returnToQueue(trx, locked.fence, open, source);
      },
      row => this.#state.set(row?.status === 'requested' ? row : undefined),
    );
    if (!row) return;
    const isReturned = row.status === 'requested';
    this.#notifier.recordEvent(isReturned ? 'handoff.returned' : 'handoff.expired', eventFields(row), actor);
    if (isReturned) this.#notifyRequested(row);
    else this.#notifyEnded(row, 'expired');
  }

  async #expire(id: HandoffId): Promise<void> {
    try {
      const row = await this.#end(id, undefined, { status: 'expired' }, 'handoff.expired', BY_SERVICE);
      this.#notifier.recordEvent('handoff.expired', eventFields(row), CLOCK_ACTOR);
      this.#notifyEnded(row, 'expired');
    } catch (error) {
      this.#notifier.logWriteFailure(error);
      if (this.open?.id === id) await this.#state.set(undefined);
    }
  }

  /**
   * Ends the lease in this process if the change could not be written to the database. The next change in the database
   * settles the expired lease.
   */
  async #endLocally({ fence }: HandoffRow, error: unknown): Promise<void> {
    this.#notifier.logWriteFailure(error);
    if (this.control?.fence === fence) await this.#state.set(undefined);
  }

  /** Waits until the person's input has been sent. The wait is limited, because a page may hang. */
  async #waitForInput(): Promise<void> {
    const settlePromise = Promise.all([...this.#settleListeners].map(settled => settled()));
    await inTime(SETTLE_MAX_MS, 'the pending input of the person', () => settlePromise.then(() => {})).catch(() => {});
  }

  #notifyRequested(row: HandoffRow): void {
    this.#notifier.notifyAgents('Berth.handoffRequested', {
      ...handoffFields(row),
      expiresAt: row.expiresAt.toISOString(),
    });
  }

  #notifyEnded(row: HandoffRow, outcome: 'cancelled' | 'expired' | 'session_ended'): void {
    this.#notifier.notifyAgents('Berth.handoffComplete', { ...handoffFields(row), outcome });
  }
}
