// Creates the source of an audit entry for each kind of actor.
import type { AccountCaller, AgentCaller, ConsumerCaller } from '../identity/caller.ts';
import type { AuditSource } from './audit.ts';

export const byCaller = ({ accountId, via, source }: AccountCaller): AuditSource => ({
  actor: { kind: 'account', id: accountId },
  via: { kind: via.kind, id: via.id },
  ...source,
});

export const byConsumer = ({ applicationId, consumerId, via, source }: ConsumerCaller) => ({
  applicationId,
  actor: { kind: 'consumer', id: consumerId } as const,
  via: { kind: via.kind, id: via.id },
  ...source,
});

export const BY_OPERATOR: AuditSource = { actor: { kind: 'operator' } };

export const byAgent = ({ keyId, source }: AgentCaller): AuditSource => ({
  actor: { kind: 'agent_key', id: keyId },
  via: { kind: 'agent_key', id: keyId },
  ...source,
});

/** The actor of changes that the service makes by itself, for example when a time limit is reached. */
export const BY_SERVICE: AuditSource = { actor: { kind: 'service' } };

/** The actor for callers who use a link and have no account. */
export const ANONYMOUS: AuditSource = { actor: { kind: 'anonymous' } };
