// The status of an Action at a given time, and the faults that follow from the status. After its expiry time, an Action
// counts as expired even if the clock task that records the expiry has not run yet.
import { type ActionStatus, OPEN_ACTION_STATUSES } from '../../../contract/actions.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import { fault } from '../faults.ts';

export function statusAt({ state, expiresAt }: Pick<ActionRow, 'state' | 'expiresAt'>, now: Date): ActionStatus {
  return isOpen(state) && expiresAt <= now ? 'expired' : state;
}

export const isOpen = (status: ActionStatus): boolean => OPEN_ACTION_STATUSES.some(open => open === status);

const ENDED_WITHOUT_EXECUTION: readonly ActionStatus[] = ['refused', 'expired', 'cancelled'];

/** @throws Fault `expired` for an Action that was refused or cancelled, or that has expired. */
export function assertNotOver({ id }: Pick<ActionRow, 'id'>, status: ActionStatus): void {
  if (!ENDED_WITHOUT_EXECUTION.includes(status)) return;
  throw fault('expired', `The Action ${id} has already ended (status ${status}). Nothing was started.`, {
    advice: 'If the call is still needed, the agent can prepare a new Action.',
    details: { status },
  });
}

export const alreadyDecided = ({ id }: Pick<ActionRow, 'id'>, status: ActionStatus): Error =>
  fault('already_decided', `The Action ${id} was already decided (${status}). The decision cannot be changed.`, {
    advice: 'To request another decision, the agent can prepare a new Action.',
    details: { status },
  });

export const digestMismatch = ({ id }: Pick<ActionRow, 'id'>): Error =>
  fault(
    'digest_mismatch',
    `The digest does not match the Action ${id}. No decision was recorded, and nothing was started.`,
    {
      advice: 'Read the Action, check its content, and send its digest.',
    },
  );
