// Audit entries of device authorizations, written in the transaction of the change. A program is anonymous until it has
// a token.
import type { DeviceAuthorizationRow, DeviceDecision } from '../../engines/store/rows/device.ts';
import type { Audit, AuditEvent, AuditTransaction } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import type { HumanCaller, RequestSource } from '../identity/caller.ts';

type DeviceAuditFact = Pick<AuditEvent, 'action' | 'actor'> & Partial<AuditEvent>;

export class DeviceAudit {
  readonly #audit: Pick<Audit, 'record'>;

  constructor(audit: Pick<Audit, 'record'>) {
    this.#audit = audit;
  }

  recordStart(row: DeviceAuthorizationRow, source: RequestSource): Promise<void> {
    return this.#record(row, { ...byProgram(source), action: 'device.started', details: { scopes: row.scopes } });
  }

  recordClaim(row: DeviceAuthorizationRow, caller: HumanCaller, trx: AuditTransaction): Promise<void> {
    return this.#record(row, { ...byCaller(caller), action: 'device.claimed' }, trx);
  }

  /**
   * Writes one entry for each application, so that the members of the application see the entry. The entries are
   * written in the order of the application ids, because each entry locks the chain of its application until the
   * commit.
   */
  async recordDecision(
    row: DeviceAuthorizationRow,
    caller: HumanCaller,
    decision: DeviceDecision,
    trx: AuditTransaction,
  ): Promise<void> {
    if (decision.status === 'denied') return this.#record(row, { ...byCaller(caller), action: 'device.denied' }, trx);
    const { scopes, applicationIds } = decision;
    const approvalFact: DeviceAuditFact = {
      ...byCaller(caller),
      action: 'device.approved',
      details: { scopes, applicationIds },
    };
    const entryApplicationIds = applicationIds.length > 0 ? [...applicationIds].sort() : [undefined];
    for (const applicationId of entryApplicationIds)
      await this.#record(row, { ...approvalFact, ...(applicationId ? { applicationId } : {}) }, trx);
  }

  recordRedemption(row: DeviceAuthorizationRow, source: RequestSource, trx: AuditTransaction): Promise<void> {
    return this.#record(row, { ...byProgram(source), action: 'device.redeemed' }, trx);
  }

  recordReplay(row: DeviceAuthorizationRow, source: RequestSource, trx: AuditTransaction): Promise<void> {
    return this.#record(row, { ...byProgram(source), action: 'device.replayed', outcome: 'refused' }, trx);
  }

  #record(
    { id, clientId, accountId, tokenId }: DeviceAuthorizationRow,
    fact: DeviceAuditFact,
    trx?: AuditTransaction,
  ): Promise<void> {
    const { details = {}, ...rest } = fact;
    const entry: AuditEvent = {
      outcome: 'success',
      target: { kind: 'device_authorization', id },
      ...(accountId ? { accountId } : {}),
      ...rest,
      details: { clientId, ...(tokenId ? { tokenId } : {}), ...details },
    };
    return this.#audit.record(entry, trx);
  }
}

const byProgram = (source: RequestSource) => ({ actor: { kind: 'anonymous' }, ...source }) as const;
