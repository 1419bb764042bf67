// Audit entries for Actions, written in the transaction that makes the change. An entry contains the digest of the
// Action, never the input.
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Audit, AuditSource, AuditTransaction, Detail } from '../audit/audit.ts';
import type { AgentCaller } from '../identity/caller.ts';

export type ActionAuditAction = `action.${'prepared' | 'approved' | 'refused' | 'expired' | 'executed' | 'cancelled'}`;

export class ActionAudit {
  readonly #audit: Pick<Audit, 'record'>;

  constructor(audit: Pick<Audit, 'record'>) {
    this.#audit = audit;
  }

  record(
    action: ActionAuditAction,
    { id, applicationId, digest, operationId }: ActionRow,
    source: AuditSource,
    trx: AuditTransaction,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<void> {
    const target = { kind: 'action', id };
    const entry = { ...source, action, applicationId, target, outcome: 'success' } as const;
    return this.#audit.record({ ...entry, details: { operationId, digest, ...details } }, trx);
  }
}

export const byAgent = ({ keyId, source }: AgentCaller): AuditSource => ({
  actor: { kind: 'agent_key', id: keyId },
  via: { kind: 'agent_key', id: keyId },
  ...(source.ip === '' ? {} : source),
});
