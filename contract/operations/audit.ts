// The list of entries in the audit log of an application.
import { ApplicationParams } from '../applications.ts';
import { AuditPage, AuditQuery } from '../audit.ts';
import type { Operation } from '../operation.ts';

export const AUDIT_OPERATIONS = {
  listAuditEntries: {
    tag: 'Audit',
    method: 'GET',
    path: '/v1/applications/{appId}/audit',
    summary: 'List audit entries',
    description:
      'Returns what was done to the application and its keys, newest first. Requires the role viewer. Entries are kept for 400 days.',
    credential: 'account',
    scopes: ['audit:read'],
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: AuditQuery,
    responses: { 200: { description: 'A page of entries.', schema: AuditPage } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
