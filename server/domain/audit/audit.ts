// Writes the audit log. This file limits the content of an entry. The database prevents later changes to entries.
import type { AuditAction } from '../../../contract/audit.ts';
import type { NamedObject, NewAuditRow } from '../../engines/store/rows/audit.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type AccountId, type ApplicationId, type AuditId, newId } from '../../kit/ids.ts';
import type { Json } from '../../kit/json.ts';
import { namedEventOf } from './told.ts';

/**
 * A fact about the action: an id, a name or a number. Must not contain a secret, or other content that a caller has
 * stored, such as an input.
 */
export type Detail = string | number | boolean | readonly string[];

export interface AuditSource {
  readonly actor: NewAuditRow['actor'];
  /** The credential that the actor used. */
  readonly via?: NamedObject;
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
}

export interface AuditEvent extends AuditSource {
  readonly action: AuditAction;
  /** If absent, the entry concerns no application. */
  readonly applicationId?: ApplicationId;
  readonly accountId?: AccountId;
  readonly target?: NamedObject;
  readonly outcome: NewAuditRow['outcome'];
  readonly details?: Readonly<Record<string, Detail>>;
}

/** The transaction that `Store.atomically` provides. */
export interface AuditTransaction {
  readonly audit: Pick<Store['audit'], 'insert'>;
  readonly applicationEvents: Store['applicationEvents'];
}

const TEXT_CHARACTERS_MAX = 200;
const LIST_ITEMS_MAX = 32;
const DETAILS_MAX = 16;
/** Matches agent keys, tokens, and all other credentials that Berth issues. */
const CREDENTIAL_PATTERN = /\bb[a-z]{2}_[A-Za-z0-9_-]{43,}/g;

export class Audit {
  readonly #store: AuditTransaction;
  readonly #clock: Clock;

  constructor(store: AuditTransaction, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Resolves when the entry is durable. With `trx`, the entry is written in the transaction that makes the change.
   * Call this last in the transaction, because other transactions wait for the locks of the entry and of its event.
   */
  async record(event: AuditEvent, trx?: AuditTransaction): Promise<void> {
    const { audit, applicationEvents } = trx ?? this.#store;
    const at = this.#clock.now();
    const { actor, via, target, ip, userAgent, requestId, details = {} } = event;
    const { action, outcome, applicationId, accountId } = event;
    await audit.insert({
      ...{ id: newId<AuditId>(at), at, action, outcome, details: boundedDetails(details) },
      actor: { ...actor, ...(actor.name === undefined ? {} : { name: sanitize(actor.name) }) },
      ...(applicationId ? { applicationId } : {}),
      ...(accountId ? { accountId } : {}),
      ...(via ? { via: boundedName(via) } : {}),
      ...(target ? { target: boundedName(target) } : {}),
      ...(ip === undefined ? {} : { ip: sanitize(ip) }),
      ...(userAgent === undefined ? {} : { userAgent: sanitize(userAgent) }),
      ...(requestId === undefined ? {} : { requestId: sanitize(requestId) }),
    });
    const namedEvent = applicationId && namedEventOf(event, at);
    if (namedEvent) await applicationEvents.append(applicationId, namedEvent);
  }
}

const boundedName = ({ kind, id }: NamedObject): NamedObject => ({ kind: sanitize(kind), id: sanitize(id) });

const boundedDetails = (details: Readonly<Record<string, Detail>>): Record<string, Json> =>
  Object.fromEntries(
    Object.entries(details)
      .slice(0, DETAILS_MAX)
      .map(([name, value]) => [sanitize(name), boundedDetail(value)]),
  );

function boundedDetail(value: Detail): Json {
  if (typeof value === 'string') return sanitize(value);
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : String(value);
  return typeof value === 'boolean' ? value : value.slice(0, LIST_ITEMS_MAX).map(sanitize);
}

/**
 * Replaces control characters and text that looks like a credential, and limits the length. Does not cut a surrogate
 * pair in half.
 */
const sanitize = (text: string): string =>
  text
    .toWellFormed()
    .replace(/\p{Cc}/gu, ' ')
    .replace(CREDENTIAL_PATTERN, '***')
    .slice(0, TEXT_CHARACTERS_MAX)
    .replace(/[\uD800-\uDBFF]$/u, '');
