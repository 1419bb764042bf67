// HTTP handlers for the audit log.
import type { AuditList } from '../../domain/audit/audit-list.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type AuditMethods = Pick<AuditList, 'list'>;

export const auditHandlers = (audit: AuditMethods) => ({
  listAuditEntries: async ({ caller, params, query }: HandlerInput<'listAuditEntries'>): Promise<HttpResponse> =>
    jsonResponse(await audit.list(caller, params.appId, query)),
});
