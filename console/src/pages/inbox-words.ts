// Labels of the inbox: who decides, and how items ended.
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';

type Mark = { readonly word: string; readonly dot: string; readonly ink: string };

const goodMark = (word: string): Mark => ({ word, dot: 'bg-good', ink: 'text-good' });
const plainMark = (word: string): Mark => ({ word, dot: 'bg-line-strong', ink: 'text-soft' });
const badMark = (word: string): Mark => ({ word, dot: 'bg-bad', ink: 'text-bad' });
const openMark = (word: string): Mark => ({ word, dot: 'bg-accent', ink: 'text-accent' });
const warnMark = (word: string): Mark => ({ word, dot: 'bg-warn', ink: 'text-warn' });

export const APPROVAL_MARKS: Readonly<Record<ApplicationAction['status'], Mark>> = {
  awaiting_approval: openMark('Waiting'),
  approved: goodMark('Approved'),
  executing: goodMark('Approved, running'),
  succeeded: goodMark('Approved and done'),
  failed: badMark('Approved, failed'),
  ambiguous: warnMark('Approved, outcome unknown'),
  refused: badMark('Refused'),
  expired: plainMark('Expired'),
  cancelled: plainMark('Cancelled'),
};

export const HANDOFF_MARKS: Readonly<Record<Handoff['status'], Mark>> = {
  requested: openMark('Waiting'),
  claimed: openMark('In progress'),
  completed: goodMark('Done'),
  declined: badMark('Declined'),
  failed: warnMark('Could not be done'),
  cancelled: plainMark('Cancelled'),
  expired: plainMark('Expired'),
  session_ended: plainMark('Session ended'),
};

/** Who must decide an Action, if the user may not decide it. */
export const APPROVER_WORDS: Readonly<Record<ApplicationAction['approver'], string>> = {
  end_user: 'an end user',
  member: 'an admin or owner',
  owner: 'an owner',
};
