// Cancels the open Actions of an operation that is withdrawn or switched off, or of an end user who is deleted, in the
// transaction of that change.
import type { EndUser } from '../../../contract/actions.ts';
import type { AtomicTables } from '../../engines/store/store.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Audit, AuditSource, AuditTransaction } from '../audit/audit.ts';
import { ActionAudit } from './action-audit.ts';

const OPERATION_WITHDRAWN = 'withdrawn';
const END_USER_DELETED = 'end_user_deleted';

interface CancelParts {
  readonly audit: Pick<Audit, 'record'>;
  readonly source: AuditSource;
  readonly now: Date;
}

export async function cancelActionsOfOperation(
  trx: Pick<AtomicTables, 'actions'> & AuditTransaction,
  { applicationId, id }: { readonly applicationId: ApplicationId; readonly id: string },
  { audit, source, now }: CancelParts,
): Promise<void> {
  const actionAudit = new ActionAudit(audit);
  for (const row of await trx.actions.cancelAll(applicationId, id, OPERATION_WITHDRAWN, now))
    await actionAudit.record('action.cancelled', row, source, trx, { why: OPERATION_WITHDRAWN });
}

export async function cancelActionsOfEndUser(
  trx: Pick<AtomicTables, 'actions'> & AuditTransaction,
  { applicationId, ...endUser }: EndUser & { readonly applicationId: ApplicationId },
  { audit, source, now }: CancelParts,
): Promise<void> {
  const actionAudit = new ActionAudit(audit);
  for (const row of await trx.actions.cancelAllFor(applicationId, endUser, END_USER_DELETED, now))
    await actionAudit.record('action.cancelled', row, source, trx, { why: END_USER_DELETED });
}
