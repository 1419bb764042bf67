// Cancels the open Actions of an operation that is withdrawn or switched off, in the same transaction.
import type { Atomic } from '../../engines/store/store.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Audit, AuditSource, AuditTransaction } from '../audit/audit.ts';
import { ActionAudit } from './action-audit.ts';

const WHY = 'withdrawn';

export async function cancelActionsOf(
  within: Pick<Atomic, 'actions'> & AuditTransaction,
  { applicationId, id }: { readonly applicationId: ApplicationId; readonly id: string },
  { audit, source, now }: { readonly audit: Pick<Audit, 'record'>; readonly source: AuditSource; readonly now: Date },
): Promise<void> {
  const entries = new ActionAudit(audit);
  for (const row of await within.actions.cancelAll(applicationId, id, WHY, now))
    await entries.record('action.cancelled', row, source, within, { why: WHY });
}
