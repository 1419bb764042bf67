// Human sessions: they are created at sign-in, get a new cookie at each proof of identity, and can be listed and ended.
import type { Acr, SignedInSession } from '../../../contract/sign-in.ts';
import type { HumanSessionRow } from '../../engines/store/rows/human-sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, type HumanSessionId, isUuid, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { HumanCaller, RequestSource } from '../identity/caller.ts';
import { SESSION_IDLE_TIMEOUT_MS } from '../identity/callers.ts';
import { mint } from '../identity/credentials.ts';

/** The maximum lifetime of a human session. */
export const SESSION_LIFETIME_MAX_MS = 7 * 24 * 3600 * 1000;

export interface HumanSessionsParts {
  readonly store: Pick<Store, 'humanSessions' | 'atomically'>;
  readonly clock: Clock;
  readonly audit: Pick<Audit, 'record'>;
  /** Called with the hex hash of each cookie that has become invalid. Other processes are notified by the store. */
  readonly onInvalidated: (hash: string) => void;
}

export class HumanSessions {
  readonly #parts: HumanSessionsParts;

  constructor(parts: HumanSessionsParts) {
    this.#parts = parts;
  }

  /** Starts a human session, and returns its cookie. */
  async begin(accountId: AccountId, acr: Acr, { ip, userAgent }: RequestSource): Promise<Secret> {
    const now = this.#parts.clock.now();
    const { hash, text } = mint('human_session');
    await this.#parts.store.humanSessions.insert({
      ...{ id: newId<HumanSessionId>(now), accountId, hash, acr, authTime: now, createdAt: now },
      expiresAt: addMs(now, SESSION_LIFETIME_MAX_MS),
      idleExpiresAt: addMs(now, SESSION_IDLE_TIMEOUT_MS),
      ...{ lastUsedAt: now, lastUsedIp: ip },
      ...(userAgent === undefined ? {} : { userAgent }),
    });
    return text;
  }

  /**
   * Renews the human session after a proof of identity, and returns its new cookie. The human session gets the strength
   * of this proof, even if an earlier proof was stronger, because only the latest proof counts for a step-up.
   */
  async renew({ accountId, via }: HumanCaller, acr: Acr): Promise<Secret> {
    const now = this.#parts.clock.now();
    const { hash, text } = mint('human_session');
    const oldHash = await this.#parts.store.humanSessions.renew(accountId, via.id, now, { hash, authTime: now, acr });
    if (!oldHash) throw notFound('Session', via.id);
    this.#dropFromCache([oldHash]);
    return text;
  }

  async list({ accountId, via }: HumanCaller): Promise<SignedInSession[]> {
    const rows = await this.#parts.store.humanSessions.list(accountId, this.#parts.clock.now());
    return rows.map(row => view(row, via.id));
  }

  async end(caller: HumanCaller, id: string): Promise<void> {
    const { accountId } = caller;
    if (!isUuid(id)) throw notFound('Session', id);
    const sessionId = id as HumanSessionId; // Checked by isUuid.
    const { store, clock, audit } = this.#parts;
    const action = id === caller.via.id ? 'account.signed_out' : 'account.session_ended';
    const endedHashes = await store.atomically(async trx => {
      const revokedHashes = await trx.humanSessions.revoke(accountId, { only: sessionId }, clock.now());
      if (revokedHashes.length === 0) throw notFound('Session', id);
      await audit.record({ action, accountId, outcome: 'success', ...byCaller(caller) }, trx);
      return revokedHashes;
    });
    this.#dropFromCache(endedHashes);
  }

  /** Signs the person out in all other browsers. */
  async endAllOthers(caller: HumanCaller): Promise<void> {
    const { accountId, via } = caller;
    const { store, clock, audit } = this.#parts;
    const endedHashes = await store.atomically(async trx => {
      const revokedHashes = await trx.humanSessions.revoke(accountId, { allBut: via.id }, clock.now());
      const entry = { action: 'account.session_ended', accountId, outcome: 'success', ...byCaller(caller) } as const;
      await audit.record(entry, trx);
      return revokedHashes;
    });
    this.#dropFromCache(endedHashes);
  }

  /** Ends all human sessions of the account except `allBut`. If `allBut` is undefined, ends all of them. */
  async endOthers(accountId: AccountId, allBut: HumanSessionId | undefined): Promise<void> {
    this.#dropFromCache(await this.#parts.store.humanSessions.revoke(accountId, { allBut }, this.#parts.clock.now()));
  }

  /**
   * Removes the account's human sessions from the caches, because the proofs that the account can give have changed.
   */
  async refresh(accountId: AccountId): Promise<void> {
    this.#dropFromCache(await this.#parts.store.humanSessions.invalidateCaches(accountId));
  }

  #dropFromCache(hashes: readonly Buffer[]): void {
    for (const hash of hashes) this.#parts.onInvalidated(hash.toString('hex'));
  }
}

function view(row: HumanSessionRow, currentId: HumanSessionId): SignedInSession {
  const expiresAt = row.idleExpiresAt < row.expiresAt ? row.idleExpiresAt : row.expiresAt;
  return {
    id: row.id,
    isCurrent: row.id === currentId,
    acr: row.acr,
    createdAt: row.createdAt.toISOString(),
    ...(row.lastUsedAt ? { lastUsedAt: row.lastUsedAt.toISOString() } : {}),
    ...(row.lastUsedIp ? { lastUsedIp: row.lastUsedIp } : {}),
    ...(row.userAgent ? { userAgent: row.userAgent } : {}),
    expiresAt: expiresAt.toISOString(),
  };
}
