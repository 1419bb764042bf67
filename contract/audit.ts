// The audit log of an application: recorded actions, each with its actor, time, address and outcome.
import { type Static, Type } from 'typebox';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';

/** All recorded actions. Actions may be added but not renamed. */
export const AUDIT_ACTIONS = [
  'token.created',
  'token.revoked',
  'token.used_first',
  'application.created',
  'application.renamed',
  'invitation.created',
  'invitation.revoked',
  'invitation.accepted',
  'invitation.refused',
  'member.role_changed',
  'member.removed',
  'member.left',
  'agent_key.created',
  'agent_key.changed',
  'agent_key.rotated',
  'agent_key.revoked',
  'agent_key.refused_address',
  'limits.changed',
  'webhook.created',
  'webhook.changed',
  'webhook.deleted',
  'webhook.key_rotated',
  'webhook.tested',
  'webhook.redelivered',
  'operation.changed',
  'operation.published',
  'operation.withdrawn',
  'operation.deleted',
  'credential.written',
  'credential.rotated',
  'credential.rolled_back',
  'credential.deleted',
  'credential.used',
  'action.prepared',
  'action.approved',
  'action.refused',
  'action.expired',
  'action.executed',
  'action.cancelled',
  'identity.changed',
  'identity.provider_written',
  'identity.provider_removed',
  'consumer.session.started',
  'consumer.session.failed',
  'consumer.session.refused',
  'consumer.session.ended',
  'consumer.session.replayed',
  'consumer.stepped_up',
  'consumer.password_changed',
  'consumer.passkey_added',
  'consumer.passkey_removed',
  'consumer.profile_changed',
  'consumer.exported',
  'consumer.linked',
  'consumer.deleted',
  'memory.written',
  'memory.deleted',
  'memory.consented',
  'memory.consent_revoked',
  'device.started',
  'device.claimed',
  'device.approved',
  'device.denied',
  'device.redeemed',
  'device.replayed',
  'account.created',
  'account.signed_in',
  'account.sign_in_failed',
  'account.signed_out',
  'account.session_ended',
  'account.password_changed',
  'account.passkey_added',
  'account.passkey_removed',
  'account.totp_enabled',
  'account.totp_disabled',
  'account.recovery_code_used',
  'account.recovery_codes_renewed',
  'account.email_verified',
  'account.stepped_up',
  'outbox.read',
  'credit.granted',
  'credit.expired',
  'topup.opened',
  'topup.cancelled',
  'topup.credited',
  'handoff.requested',
  'handoff.claimed',
  'handoff.renewed',
  'handoff.returned',
  'handoff.completed',
  'handoff.cancelled',
  'handoff.expired',
  'host.drained',
  'host.undrained',
  'vault.rotated',
  'signing_key.rotated',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export const AUDIT_ACTOR_KINDS = ['account', 'agent_key', 'consumer', 'operator', 'anonymous', 'service'] as const;
export const AUDIT_OUTCOMES = ['success', 'refused'] as const;

const ObjectReference = (description: string) =>
  Type.Object({ kind: Type.String(), id: Type.String() }, { description });

export const AuditEntry = Type.Object(
  {
    id: Uuid('Id of the entry.'),
    at: Time('When the action was performed.'),
    applicationId: Type.Optional(Uuid('Id of the application.')),
    actor: Type.Object(
      {
        kind: Type.Enum([...AUDIT_ACTOR_KINDS], {
          description:
            '`operator`: a command on the machine of the service. `anonymous`: a caller who has no valid credential, or only a link. `service`: Berth itself, because a time limit was reached.',
        }),
        id: Type.Optional(Type.String({ description: 'Id of the account, agent key or consumer.' })),
        name: Type.Optional(Type.String({ description: 'The name of the actor at that time.' })),
      },
      { description: 'Who performed the action.' },
    ),
    via: Type.Optional(
      ObjectReference(
        'The credential that was used, by kind (`personal_token`, `developer_token`, `human_session`, `consumer_session` or `agent_key`) and id.',
      ),
    ),
    action: Type.Enum([...AUDIT_ACTIONS], { description: 'What was done.' }),
    target: Type.Optional(ObjectReference('The object that the action changed or used.')),
    outcome: Type.Enum([...AUDIT_OUTCOMES], { description: '`refused`: nothing was changed.' }),
    ip: Type.Optional(Type.String({ description: 'IP address of the caller.' })),
    userAgent: Type.Optional(Type.String({ description: 'The `User-Agent` of the request, shortened.' })),
    requestId: Type.Optional(Type.String({ description: 'Id of the request.' })),
    details: Type.Optional(AnyObject('Facts about the action. Never a secret or an input value.')),
  },
  { description: 'An entry of the audit log. Entries are never changed, and are kept for 400 days.' },
);
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditQuery = Type.Object({
  action: Type.Optional(Type.Enum([...AUDIT_ACTIONS], { description: 'Only entries of this action.' })),
  actor: Type.Optional(
    Type.String({ format: 'uuid', description: 'Only entries of the account, agent key or consumer with this id.' }),
  ),
  after: Type.Optional(
    Type.String({ format: 'date-time', description: 'Only entries later than this time. ISO 8601.' }),
  ),
  ...PageQuery.properties,
});
export type AuditQuery = Static<typeof AuditQuery>;

export const AuditPage = Page(AuditEntry);
export type AuditPage = Static<typeof AuditPage>;
