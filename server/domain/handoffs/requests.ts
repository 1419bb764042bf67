// Requests for hand-offs, whether sent over the API, over CDP, or by an operation. Checks what a schema cannot express,
// extends the session if that was requested, makes the hand-off expire no later than the session, and passes the
// request to the lease of the session.
import type { Warning } from '../../../contract/common.ts';
import { OPEN_HANDOFFS_PER_CONSUMER_MAX } from '../../../contract/consumer-handoffs.ts';
import {
  type Handoff,
  type HandoffTerms,
  LEASE_SECONDS_DEFAULT,
  TTL_SECONDS_DEFAULT,
} from '../../../contract/handoffs.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import {
  type ApplicationId,
  type ConsumerId,
  type HandoffId,
  type KeyId,
  newId,
  type SessionId,
} from '../../kit/ids.ts';
import type { AuditSource } from '../audit/audit.ts';
import { invalidRequest, limitReached, scopeMissing, sessionNotRunning } from '../faults.ts';
import { mint } from '../identity/credentials.ts';
import { isExclusive, sessionExclusive } from '../sessions/exclusive.ts';
import { requireSession } from '../sessions/session.ts';
import { handoffExists } from './faults.ts';
import type { Lease } from './lease.ts';
import { consumerHandoffPageUrl, handoffPageUrl, handoffView } from './view.ts';

const OPEN_PER_APPLICATION_MAX = 100;
const WAIT_ADVICE = 'Wait until some of them end, or cancel one that is no longer needed.';

/** The requester, already verified by the caller. */
export interface Requester {
  readonly kind: 'agent_key' | 'account' | 'client';
  readonly id?: string;
  readonly origin: 'api' | 'cdp' | 'operation';
  readonly source: AuditSource;
  readonly actor: Actor;
}

export interface RequestsParts {
  readonly store: Pick<Store, 'sessions' | 'handoffs' | 'keys' | 'consumers'>;
  readonly leaseOf: (session: SessionId) => Lease | undefined;
  /** Extends the session up to this time, as far as its limits allow. Returns the new end of the session. */
  readonly extend: (row: SessionRow, until: Date) => Promise<Date>;
  readonly publicUrl: string;
  readonly clock: Clock;
}

export class HandoffRequests {
  readonly #parts: RequestsParts;

  constructor(parts: RequestsParts) {
    this.#parts = parts;
  }

  /** Throws the same fault as `request` if the request would be refused now. */
  async assertPossible(application: ApplicationId, sessionId: string, terms: HandoffTerms): Promise<void> {
    const { lease } = await this.#requireValid(application, sessionId, terms);
    if (lease.open) throw handoffExists(lease.open);
  }

  /** Requests a hand-off. `id` is the id of the new hand-off, for a requester that must find it again. */
  async request(
    application: ApplicationId,
    sessionId: string,
    terms: HandoffTerms,
    requestedBy: Requester,
    id?: HandoffId,
  ): Promise<Handoff> {
    const { session, lease, origins, consumerId } = await this.#requireValid(application, sessionId, terms);
    const now = this.#parts.clock.now();
    const { expiresAt, warnings } = await this.#resolveExpiry(session, terms, now);
    const claimableBy = claimersIn(terms);
    const secret = claimableBy === 'link' ? mint('handoff_claim') : undefined;
    const row: HandoffRow = {
      ...{ id: id ?? newId<HandoffId>(now), applicationId: application, sessionId: session.id, status: 'requested' },
      ...{ origin: requestedBy.origin, instructions: terms.instructions, reason: terms.reason ?? 'other', claimableBy },
      ...{ record: terms.record ?? 'mask', leaseSeconds: terms.leaseSeconds ?? LEASE_SECONDS_DEFAULT, fence: 0 },
      ...{ requesterKind: requestedBy.kind, createdAt: now, expiresAt, claimTries: 0 },
      ...(session.keyId ? { keyId: session.keyId } : {}),
      ...(requestedBy.id === undefined ? {} : { requesterId: requestedBy.id }),
      ...(terms.pageId === undefined ? {} : { pageId: terms.pageId }),
      ...(terms.callbackEvent === undefined ? {} : { callbackEvent: terms.callbackEvent }),
      ...(origins ? { allowedOrigins: origins } : {}),
      ...(secret ? { claimHash: secret.hash } : {}),
      ...(consumerId === undefined ? {} : { consumerId }),
    };
    const requestedRow = await lease.request(row, requestedBy.source, requestedBy.actor);
    const claimUrl = this.#claimUrl(requestedRow, secret?.text.reveal());
    return { ...handoffView(requestedRow, warnings), ...(claimUrl === undefined ? {} : { claimUrl }) };
  }

  async #requireValid(application: ApplicationId, sessionId: string, terms: HandoffTerms) {
    const { store, leaseOf } = this.#parts;
    const session = await requireSession(store.sessions, application, sessionId);
    // Text that was typed into the pages of an exclusive session must not be visible to any person.
    if (isExclusive(session)) throw sessionExclusive(session.id);
    const lease = leaseOf(session.id);
    if (session.status !== 'RUNNING' || session.end || !lease) throw sessionNotRunning(session.id, session.status);
    const origins = terms.allowedOrigins?.map(originOf);
    if (terms.record === 'keep') await this.#assertMayRecord(session);
    if ((await store.handoffs.countOpen(application)) >= OPEN_PER_APPLICATION_MAX)
      throw limitReached('open hand-offs in this application', OPEN_PER_APPLICATION_MAX, WAIT_ADVICE);
    const consumerId = await this.#resolveConsumerId(application, terms);
    return { session, lease, origins, consumerId };
  }

  async #resolveConsumerId(application: ApplicationId, { claimableBy }: HandoffTerms): Promise<ConsumerId | undefined> {
    if (claimableBy === undefined || !('endUser' in claimableBy)) return undefined;
    const { consumers, handoffs } = this.#parts.store;
    const { providerId, subject } = claimableBy.endUser;
    const consumer = await consumers.bySubject(application, providerId, subject);
    if (!consumer)
      throw invalidRequest([{ path: 'claimableBy.endUser', message: 'does not exist in this application' }]);
    if ((await handoffs.countOpenOfConsumer(consumer.id)) >= OPEN_HANDOFFS_PER_CONSUMER_MAX)
      throw limitReached('open hand-offs of this end user', OPEN_HANDOFFS_PER_CONSUMER_MAX, WAIT_ADVICE);
    return consumer.id;
  }

  /**
   * Returns the address at which the hand-off is claimed. The secret is in the fragment, which browsers do not send to
   * any server.
   */
  #claimUrl(row: HandoffRow, secret: string | undefined): string | undefined {
    const { publicUrl } = this.#parts;
    if (row.claimableBy === 'end_user') return consumerHandoffPageUrl(publicUrl, row);
    return secret === undefined ? undefined : `${handoffPageUrl(publicUrl, row)}#${secret}`;
  }

  async #resolveExpiry(
    session: SessionRow,
    { ttlSeconds = TTL_SECONDS_DEFAULT, extendSession = false }: HandoffTerms,
    now: Date,
  ): Promise<{ expiresAt: Date; warnings: readonly Warning[] }> {
    const requestedExpiry = addMs(now, 1000 * ttlSeconds);
    if (requestedExpiry <= session.expiresAt) return { expiresAt: requestedExpiry, warnings: [] };
    const sessionEnd = extendSession ? await this.#parts.extend(session, requestedExpiry) : session.expiresAt;
    if (requestedExpiry <= sessionEnd) return { expiresAt: requestedExpiry, warnings: [] };
    const message = `The session ends at ${sessionEnd.toISOString()}, so the hand-off expires at that time.`;
    return { expiresAt: sessionEnd, warnings: [{ code: 'ttl_cut', path: 'ttlSeconds', message }] };
  }

  /**
   * Throws if the key of the session lacks the scope for files, because the recording of a person's input is a file of
   * the session.
   */
  async #assertMayRecord({ applicationId, keyId }: SessionRow): Promise<void> {
    const key: KeyRow | undefined = keyId && (await this.#parts.store.keys.get(applicationId, keyId as KeyId));
    if (!key?.scopes.includes('browsers:files')) throw scopeMissing(['browsers:files']);
  }
}

const claimersIn = ({ claimableBy = ['members'] }: HandoffTerms): HandoffRow['claimableBy'] =>
  'endUser' in claimableBy ? 'end_user' : (claimableBy[0] ?? 'members');

function originOf(text: string, index: number): string {
  const url = URL.parse(text);
  if (url && (url.protocol === 'https:' || url.protocol === 'http:') && url.pathname === '/') return url.origin;
  throw invalidRequest([
    { path: `allowedOrigins.${index}`, message: 'is not an origin; expected scheme, host and port only' },
  ]);
}
