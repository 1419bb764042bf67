// Tells members by mail that an Action waits for them. The mail has the words of the operation, and none of the agent.

import type { Role } from '../../engines/store/rows/accounts.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Store } from '../../engines/store/store.ts';
import { isFault, reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Mail } from '../mail/mail.ts';
import { approvalUrl } from './view.ts';

/** The most members that get a mail about one Action. */
const RECIPIENTS_MAX = 20;
const ROLES: Readonly<Record<'member' | 'owner', readonly Role[]>> = { member: ['admin', 'owner'], owner: ['owner'] };

export interface TellingParts {
  readonly store: Pick<Store, 'actions' | 'applications'>;
  readonly mail: Pick<Mail, 'queue'>;
  readonly publicUrl: string;
  readonly log: Log;
}

/** A mail that cannot be queued is logged: the Action is in the console too. */
export async function tellMembers(
  { store, mail, publicUrl, log }: TellingParts,
  row: ActionRow,
  title: string,
): Promise<void> {
  if (row.approver === 'end_user') return;
  const [application, addresses] = await Promise.all([
    store.applications.byId(row.applicationId),
    store.actions.addresses(row.applicationId, ROLES[row.approver], RECIPIENTS_MAX),
  ]);
  const subject = oneLine(`To approve: ${title} (${application?.name ?? ''})`);
  const text = [
    `An agent of the application "${oneLine(application?.name ?? '')}" asks for your approval: ${oneLine(title)}.`,
    `Read what it would do, and approve or refuse it, here:\n${approvalUrl(publicUrl, row)}`,
    `It expires at ${row.expiresAt.toISOString()}. Nothing happens without a decision.\n`,
  ].join('\n\n');
  for (const to of addresses)
    try {
      await mail.queue({ to, subject, text });
    } catch (error) {
      if (!isFault(error, 'rate_limited')) log.warn('action.mail_not_queued', { jobId: row.id, error: reason(error) });
    }
}

const oneLine = (text: string): string => text.replace(/\s+/gu, ' ');
