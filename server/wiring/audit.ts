// The wiring of the audit log. Entries are written through the foundation; here it is read and swept.
import { AuditList } from '../domain/audit/audit-list.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

const HOUR_MS = 3_600_000;
const BATCH = 1_000;

export const openAudit = (
  { clock }: Runtime,
  { store, secret }: Foundation,
  applications: Pick<Applications, 'require'>,
) => ({
  service: new AuditList({ store, applications, cursors: new Cursors(secret, clock) }),
  tasks: [{ name: 'forget_audit', everyMs: HOUR_MS, run: async () => ({ removed: await store.audit.forget(BATCH) }) }],
});
