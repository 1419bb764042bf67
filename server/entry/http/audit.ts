// HTTP handlers for the audit log.
import type { AuditList } from '../../domain/audit/audit-list.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type AuditVerbs = Pick<AuditList, 'list'>;

export const auditHandlers = (audit: AuditVerbs) => ({
  listAuditEntries: async ({ caller, params, query }: In<'listAuditEntries'>): Promise<Answer> =>
    answer(await audit.list(caller, params.appId, query)),
});
