// The faults of the hand-off operations.
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import { fault } from '../faults.ts';

export const handoffExists = ({ id, origin, sessionId }: HandoffRow): Error =>
  fault(
    'handoff_exists',
    origin === 'viewer'
      ? `A person controls session ${sessionId} in its live view.`
      : `Session ${sessionId} already has an open hand-off.`,
    {
      advice: 'Wait until the hand-off ends. Only its requester, or an admin of the application, can cancel it.',
      details: { handoffId: id },
    },
  );

export const handoffClaimed = ({ id, sessionId }: Pick<HandoffRow, 'id' | 'sessionId'>): Error =>
  fault('handoff_claimed', `A person has control of session ${sessionId}.`, {
    advice: 'Wait until the hand-off ends.',
    details: { handoffId: id },
  });

export const handoffEnded = ({ id, status }: Pick<HandoffRow, 'id' | 'status'>): Error =>
  fault('already_decided', `Hand-off ${id} has ended (status ${status}).`, {
    advice: 'If a person is still needed, the agent can request another hand-off.',
    details: { status },
  });

export const staleFence = (id: string): Error =>
  fault('stale_fence', `Your lease on hand-off ${id} has ended.`, {
    advice: 'If the hand-off is still waiting for a person, claim it again.',
  });
