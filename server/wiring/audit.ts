// The wiring of the audit log. Entries are written through the foundation; here they are read, sealed and swept.
import { AuditList } from '../domain/audit/audit-list.ts';
import { SealHeads } from '../domain/audit/seal-heads.ts';
import { Sealer } from '../domain/audit/sealer.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { runInBatches } from '../domain/in-batches.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const FORGET_LIMITS = { batchSize: 1_000, batchesMax: 100 };

export const openAudit = (
  { clock, log }: Runtime,
  { config, store, secret, signingKeys: keys }: Foundation,
  applications: Pick<Applications, 'require'>,
) => {
  const sealer = new Sealer({ store, keys, heads: new SealHeads(config.dataDir), clock, log });
  const forget = async () => ({ removed: await runInBatches(FORGET_LIMITS, store.audit.forget) });
  return {
    service: new AuditList({ store, applications, cursors: new Cursors(secret, clock) }),
    tasks: [
      { name: 'seal_audit', everyMs: MINUTE_MS, run: () => sealer.seal() },
      { name: 'forget_audit', everyMs: HOUR_MS, run: forget },
    ],
  };
};
