// Converts audit entries to events of their application, for its feed and its webhooks. Events go to programs of the
// application, so they contain only ids and values that Berth defines: no input, no text from an agent, and no data of
// a consumer.
import type { AuditAction } from '../../../contract/audit.ts';
import type { EventType } from '../../../contract/events.ts';
import type { NamedObject, NewAuditRow } from '../../engines/store/rows/audit.ts';
import type { Actor, NamedEvent } from '../../engines/store/rows/events.ts';
import type { Json, JsonObject } from '../../kit/json.ts';

export interface RecordedEntry {
  readonly action: AuditAction;
  readonly actor: NewAuditRow['actor'];
  readonly target?: NamedObject;
  readonly details?: Readonly<Record<string, Json | readonly string[]>>;
}

interface EventMapping {
  /** Name of the event field that contains the id of the target. */
  readonly target?: string;
  readonly details: readonly string[];
}

const ACTION_MAPPING = { target: 'jobId', details: ['operationId', 'digest'] } as const;
const DECISION_MAPPING = { ...ACTION_MAPPING, details: [...ACTION_MAPPING.details, 'method'] } as const;

/**
 * Audit actions that are also events, and the data that each event contains. Actions that anyone can cause without an
 * account, such as a failed sign-in, have no event.
 */
const EVENT_MAPPINGS = {
  'agent_key.revoked': { target: 'keyId', details: [] },
  'action.prepared': { ...ACTION_MAPPING, details: [...ACTION_MAPPING.details, 'approver'] },
  'action.approved': DECISION_MAPPING,
  'action.refused': DECISION_MAPPING,
  'action.expired': ACTION_MAPPING,
  'action.executed': { ...ACTION_MAPPING, details: [...ACTION_MAPPING.details, 'invocationId'] },
  'action.cancelled': { ...ACTION_MAPPING, details: [...ACTION_MAPPING.details, 'why'] },
  'consumer.session.started': { details: ['provider', 'acr'] },
  'consumer.session.ended': { details: ['which'] },
  'consumer.session.replayed': { details: [] },
  'consumer.deleted': { details: [] },
  'consumer.linked': { target: 'linkedId', details: [] },
  'memory.written': { target: 'consumerId', details: ['version'] },
  'memory.deleted': { details: ['items'] },
  'memory.consented': { target: 'consentId', details: ['keyId', 'access'] },
  'memory.consent_revoked': { target: 'consentId', details: [] },
} as const satisfies Partial<Record<AuditAction & EventType, EventMapping>>;

const hasEvent = (action: AuditAction): action is keyof typeof EVENT_MAPPINGS => Object.hasOwn(EVENT_MAPPINGS, action);

/** Returns the event that programs receive for the audit entry. Undefined if there is no event for the entry. */
export function namedEventOf({ action, actor, target, details = {} }: RecordedEntry, at: Date): NamedEvent | undefined {
  if (!hasEvent(action)) return undefined;
  const mapping: EventMapping = EVENT_MAPPINGS[action];
  const detailEntries = mapping.details.flatMap(name => {
    const value = details[name];
    return value === undefined || typeof value === 'object' ? [] : [[name, value] as const];
  });
  const detail: JsonObject = {
    ...(mapping.target && target ? { [mapping.target]: target.id } : {}),
    ...(actor.kind === 'consumer' && actor.id !== undefined ? { consumerId: actor.id } : {}),
    ...Object.fromEntries(detailEntries),
  };
  return { type: action, at, actor: actorOf(actor), detail };
}

const ACTOR_KINDS: Readonly<Record<RecordedEntry['actor']['kind'], Actor['kind']>> = {
  account: 'account',
  agent_key: 'agentKey',
  consumer: 'consumer',
  operator: 'operator',
  anonymous: 'service',
  service: 'clock',
};

const actorOf = ({ kind, id }: RecordedEntry['actor']): Actor => ({
  kind: ACTOR_KINDS[kind],
  ...(id === undefined ? {} : { id }),
});
