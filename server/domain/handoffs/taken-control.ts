// Control that a viewer takes in the live view without being asked. It is a hand-off whose origin is `viewer`. The
// server renews its lease while the live view is open.
import type { Actor } from '../../engines/store/rows/events.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type HandoffId, type KeyId, newId } from '../../kit/ids.ts';
import type { Control } from './control.ts';
import { endedFields, type LeaseChanges } from './lease-changes.ts';
import type { LeaseNotifier } from './lease-notifier.ts';
import type { LeasedSession } from './lease-parts.ts';
import type { LeaseState } from './lease-state.ts';

/**
 * Length of the lease, which is renewed while the live view is open. After a disconnect, the viewer can reconnect
 * during the remaining time.
 */
export const LEASE_DURATION_MS = 30_000;

export interface TakenControlParts {
  readonly session: Pick<LeasedSession, 'id' | 'applicationId'>;
  readonly state: LeaseState;
  readonly changes: LeaseChanges;
  readonly notifier: LeaseNotifier;
  readonly clock: Clock;
  /** The agent key that created the session. */
  readonly keyId: KeyId | undefined;
}

export class TakenControl {
  readonly #parts: TakenControlParts;

  constructor(parts: TakenControlParts) {
    this.#parts = parts;
  }

  /**
   * Gives control to the viewer. Undefined if another person has control, if a person was asked to take control, or if
   * the session is not running.
   */
  async take(holder: string): Promise<Control | undefined> {
    const { state, changes, notifier, session, clock } = this.#parts;
    const previousHolder = state.control?.holder;
    const row = await changes.make(
      async (trx, { fence, runs }, open) => {
        if (!runs || (open && (open.origin !== 'viewer' || open.holder !== holder))) return undefined;
        const now = clock.now();
        const leaseFields = { fence: fence + 1, leaseExpiresAt: addMs(now, LEASE_DURATION_MS) };
        await trx.controls.setFence(session.id, leaseFields.fence);
        if (open) return trx.handoffs.change(open.id, leaseFields);
        const row = { ...this.#rowFor(holder, now), ...leaseFields };
        await trx.handoffs.insert(row);
        return row;
      },
      row => row && state.set(row),
    );
    if (!row) {
      notifier.recordEvent('control.refused', { why: state.row ? 'held' : 'not_running' });
      return undefined;
    }
    if (previousHolder !== holder) notifier.recordEvent('control.taken', { fence: row.fence });
    return state.control;
  }

  /** Renews the lease. False if control has ended. */
  async renew({ holder, fence }: Pick<Control, 'holder' | 'fence'>): Promise<boolean> {
    const { state, changes, clock } = this.#parts;
    if (!state.isFresh(fence)) return false;
    const row = await changes.make(
      async (trx, _, open) => {
        if (open?.fence !== fence || open.holder !== holder || open.status !== 'claimed') return undefined;
        return trx.handoffs.change(open.id, { leaseExpiresAt: addMs(clock.now(), LEASE_DURATION_MS) });
      },
      // Control may have ended while the change was being written.
      row => row && state.control?.fence === fence && state.set(row),
    );
    return row !== undefined && state.isFresh(fence);
  }

  /** Ends control. In this process, control ends even if the database cannot be written. */
  async end(
    fence: number,
    status: 'completed' | 'expired',
    type: 'control.given_back' | 'control.expired',
    actor: Actor,
  ): Promise<void> {
    const { state, changes, notifier, session, clock } = this.#parts;
    if (state.control?.fence !== fence) return;
    state.dropControl();
    await changes
      .makeEnd(async (trx, locked, open) => {
        if (open?.fence !== fence) return;
        await trx.controls.setFence(session.id, locked.fence + 1);
        await trx.handoffs.change(open.id, { ...endedFields(status, clock.now()), fence: locked.fence + 1 });
      })
      .catch(error => notifier.logWriteFailure(error));
    notifier.recordEvent(type, { fence }, actor);
    if (!state.control) await state.set(undefined);
  }

  #rowFor(holder: string, now: Date): HandoffRow {
    const { session, keyId } = this.#parts;
    return {
      ...{ id: newId<HandoffId>(now), applicationId: session.applicationId, sessionId: session.id, origin: 'viewer' },
      ...{ status: 'claimed', instructions: '', reason: 'other', claimableBy: 'viewer', record: 'keep', fence: 0 },
      ...{
        leaseSeconds: LEASE_DURATION_MS / 1000,
        requesterKind: 'viewer',
        createdAt: now,
        expiresAt: addMs(now, LEASE_DURATION_MS),
      },
      ...{ claimTries: 0, holder, holderKind: 'viewer', claimedAt: now },
      ...(keyId ? { keyId } : {}),
    };
  }
}
