// Labels of the inbox: who decides, and how items ended.
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';

type Mark = { readonly word: string; readonly dot: string; readonly ink: string };

const goodMark = (word: string): Mark => ({ word, dot: 'bg-good', ink: 'text-good' });
const plain = (word: string): Mark => ({ word, dot: 'bg-line-strong', ink: 'text-soft' });
const badMark = (word: string): Mark => ({ word, dot: 'bg-bad', ink: 'text-bad' });
const open = (word: string): Mark => ({ word, dot: 'bg-accent', ink: 'text-accent' });
const warn = (word: string): Mark => ({ word, dot: 'bg-warn', ink: 'text-warn' });

export const APPROVAL_ENDS: Readonly<Record<ApplicationAction['status'], Mark>> = {
  awaiting_approval: open('Waiting'),
  approved: goodMark('Approved'),
  executing: goodMark('Approved, running'),
  succeeded: goodMark('Approved and done'),
  failed: badMark('Approved, failed'),
  ambiguous: warn('Approved, outcome unknown'),
  refused: badMark('Refused'),
  expired: plain('Expired'),
  cancelled: plain('Cancelled'),
};

export const HANDOFF_ENDS: Readonly<Record<Handoff['status'], Mark>> = {
  requested: open('Waiting'),
  claimed: open('In progress'),
  completed: goodMark('Done'),
  declined: badMark('Declined'),
  failed: warn('Could not be done'),
  cancelled: plain('Cancelled'),
  expired: plain('Expired'),
  session_ended: plain('Session ended'),
};

/** Who must decide an Action, if not the reader. */
export const APPROVERS: Readonly<Record<ApplicationAction['approver'], string>> = {
  end_user: 'an end user',
  member: 'an admin or owner',
  owner: 'an owner',
};
