// Consumer sessions: opens them with a code, refreshes them with rotating tokens, and ends them. A consumer session is
// a family of tokens. If a refresh token or a code is sent a second time, the consumer session ends, because one of the
// two senders must have stolen the token or code (RFC 9700).
import { type ConsumerDevices, SESSIONS_SHOWN_MAX } from '../../../contract/consumer-data.ts';
import type { ConsumerSession, ConsumerTokens, ExchangeConsumerCode } from '../../../contract/consumers.ts';
import type { Acr } from '../../../contract/sign-in.ts';
import type { ConsumerRow, ConsumerSessionRow, ConsumerSignInRow } from '../../engines/store/rows/consumers.ts';
import type { AtomicTables, Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ConsumerId, type ConsumerSessionId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { ConsumerCaller, RequestSource } from '../identity/caller.ts';
import { type MintedCredential, mint, recognizeSecret } from '../identity/credentials.ts';
import { invalidGrant } from './faults.ts';
import type { Identities } from './identities.ts';
import { challengeOf } from './sign-ins.ts';

export interface ConsumerSessionsParts {
  readonly store: Pick<Store, 'consumers' | 'consumerSessions' | 'consumerSignIns' | 'atomically'>;
  readonly identities: Identities;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  /**
   * Called with the hash, in hex, of each access token that is no longer valid. Other processes are notified through
   * the store.
   */
  readonly onTokenInvalidated: (hash: string) => void;
}

/** The tokens of a new consumer session. `cookie`, for Berth's own pages, is set only if the transport is `cookie`. */
export interface OpenedSession {
  readonly tokens: ConsumerTokens;
  readonly cookie?: { readonly secret: Secret; readonly seconds: number };
}

export class ConsumerSessions {
  readonly #parts: ConsumerSessionsParts;

  constructor(parts: ConsumerSessionsParts) {
    this.#parts = parts;
  }

  async exchange(
    appId: string,
    providerId: string,
    { code, codeVerifier, redirectUri }: ExchangeConsumerCode,
    source: RequestSource,
  ): Promise<OpenedSession> {
    const { store, identities, clock } = this.#parts;
    const { id } = await identities.applicationWithProvider(appId, providerId);
    const hash = recognizeSecret('consumer_code', code);
    const row = hash && (await store.consumerSignIns.byCode(hash));
    if (!row || row.applicationId !== id || row.providerId !== providerId) throw invalidGrant('code');
    const now = clock.now();
    const isCodeValid = challengeOf(codeVerifier) === row.codeChallenge && redirectUri === row.redirectUri;
    const isUnexpired = row.codeExpiresAt !== undefined && row.codeExpiresAt > now;
    const identity = await identities.of(id);
    const accessCredential = mint('consumer_session');
    const refreshCredential = row.transport === 'token' ? mint('consumer_refresh') : undefined;
    const sessionId = newId<ConsumerSessionId>(now);
    const openResult = await store.atomically(async trx => {
      if (!(await trx.consumerSignIns.useCode(row.id, now, sessionId))) return 'replayed';
      if (!isCodeValid || !isUnexpired) return 'wrong';
      const { consumerId, acr, authTime, idTokenSealed } = row;
      const consumer = consumerId && (await trx.consumers.get(id, consumerId));
      if (!consumer || consumer.linkedTo || !acr || !authTime) return 'wrong';
      await trx.consumerSessions.insert({
        ...{ id: sessionId, consumerId: consumer.id, applicationId: id, providerId, acr, authTime, createdAt: now },
        ...{ hash: accessCredential.hash, expiresAt: addMs(now, identity.sessionSeconds * 1000) },
        ...(refreshCredential ? { refreshHash: refreshCredential.hash } : {}),
        refreshExpiresAt: addMs(now, identity.refreshSeconds * 1000),
        ...(idTokenSealed ? { idTokenSealed } : {}),
        ...{ lastUsedAt: now, lastUsedIp: source.ip },
        ...(source.userAgent === undefined ? {} : { userAgent: source.userAgent }),
      });
      return { consumer, acr, authTime };
    });
    if (openResult === 'replayed') await this.#endReplayedSession(row, source);
    if (typeof openResult === 'string') throw invalidGrant('code');
    return openedSessionOf(openResult, identity.sessionSeconds, accessCredential, refreshCredential);
  }

  async refresh(
    appId: string,
    providerId: string,
    refreshToken: string,
    source: RequestSource,
  ): Promise<OpenedSession> {
    const { store, identities, clock } = this.#parts;
    // A consumer session can be refreshed even after its provider was removed.
    const { id } = await identities.requireApplication(appId);
    const hash = recognizeSecret('consumer_refresh', refreshToken);
    const foundSession = hash && (await store.consumerSessions.byRefreshHash(hash));
    if (!foundSession || foundSession.row.applicationId !== id || foundSession.row.providerId !== providerId) {
      await identities.applicationWithProvider(appId, providerId); // Throws if there is no such provider.
      throw invalidGrant('refresh token');
    }
    const { row } = foundSession;
    const now = clock.now();
    if (row.revokedAt || row.refreshExpiresAt <= now) throw invalidGrant('refresh token');
    const identity = await identities.of(id);
    const [accessCredential, refreshCredential] = [mint('consumer_session'), mint('consumer_refresh')];
    const expiresAt = earlierOf(addMs(now, identity.sessionSeconds * 1000), row.refreshExpiresAt);
    const tokens = { hash: accessCredential.hash, refreshHash: refreshCredential.hash, expiresAt };
    if (!foundSession.isCurrent || !(await store.consumerSessions.refresh(row.id, hash, tokens, now))) {
      await this.#end(row, 'consumer.session.replayed', source);
      throw invalidGrant('refresh token');
    }
    this.#parts.onTokenInvalidated(row.hash.toString('hex'));
    const consumer = await store.consumers.get(id, row.consumerId);
    if (!consumer || consumer.linkedTo) throw invalidGrant('refresh token');
    const seconds = Math.floor((expiresAt.getTime() - now.getTime()) / 1000);
    return openedSessionOf(
      { consumer, acr: row.acr, authTime: row.authTime },
      seconds,
      accessCredential,
      refreshCredential,
    );
  }

  /**
   * Reads the consumer session again after a new proof of identity, because `caller` still contains the previous proof.
   */
  async reread(caller: ConsumerCaller): Promise<ConsumerSession> {
    const row = await this.#parts.store.consumerSessions.get(caller.applicationId, caller.via.id);
    if (!row) throw notFound('Session', caller.via.id);
    const { acr, authTime, expiresAt } = row;
    return this.read({ ...caller, via: { ...caller.via, acr, authTime, expiresAt } });
  }

  async read(caller: ConsumerCaller): Promise<ConsumerSession> {
    const { consumerId, applicationId, via } = caller;
    const consumer = await this.#parts.store.consumers.get(applicationId, consumerId);
    if (!consumer) throw notFound('Consumer', consumerId);
    return {
      consumer: consumerIdentityOf(consumer),
      acr: via.acr,
      authTime: secondsOf(via.authTime),
      expiresAt: via.expiresAt.toISOString(),
    };
  }

  /** Ends this consumer session, or all sessions of the consumer. Returns the row of this consumer session. */
  async end(caller: ConsumerCaller, which: 'this' | 'all'): Promise<ConsumerSessionRow | undefined> {
    const { applicationId, consumerId, via } = caller;
    const { store, audit, clock } = this.#parts;
    const row = await store.consumerSessions.get(applicationId, via.id);
    const choice = which === 'this' ? { only: via.id } : { allBut: undefined };
    const hashes = await store.atomically(async trx => {
      const revokedHashes = await trx.consumerSessions.revoke(consumerId, choice, clock.now());
      const entry = { action: 'consumer.session.ended', outcome: 'success', details: { which } } as const;
      await audit.record({ ...byConsumer(caller), ...entry }, trx);
      return revokedHashes;
    });
    this.#notifyInvalidated(hashes);
    return row;
  }

  /** Returns the sessions in which the consumer is signed in. */
  async list({ consumerId, via }: ConsumerCaller): Promise<ConsumerDevices> {
    const { store, clock } = this.#parts;
    const rows = await store.consumerSessions.listActive(consumerId, clock.now(), SESSIONS_SHOWN_MAX);
    return { data: rows.map(row => deviceOf(row, via.id)) };
  }

  /** Ends one session of the consumer. The session may belong to any provider. */
  async endSession(caller: ConsumerCaller, id: string): Promise<ConsumerDevices> {
    const { store, audit, clock } = this.#parts;
    const session = id as ConsumerSessionId; // The schema requires a UUID.
    const hashes = await store.atomically(async trx => {
      const revokedHashes = await trx.consumerSessions.revoke(caller.consumerId, { only: session }, clock.now());
      if (revokedHashes.length === 0) throw notFound('Session', id);
      const target = { kind: 'consumer_session', id };
      const entry = {
        action: 'consumer.session.ended',
        outcome: 'success',
        target,
        details: { which: 'one' },
      } as const;
      await audit.record({ ...byConsumer(caller), ...entry }, trx);
      return revokedHashes;
    });
    this.#notifyInvalidated(hashes);
    return this.list(caller);
  }

  /** Ends all sessions of the consumer, without an entry in the audit log. */
  async endAllOf(consumer: ConsumerId, trx?: Pick<AtomicTables, 'consumerSessions'>): Promise<void> {
    const rows = trx?.consumerSessions ?? this.#parts.store.consumerSessions;
    this.#notifyInvalidated(await rows.revoke(consumer, { allBut: undefined }, this.#parts.clock.now()));
  }

  /** Records a proof by a passkey. Returns the new cookie, and the number of seconds for which it is valid. */
  async recordProof(caller: ConsumerCaller, acr: Acr): Promise<{ readonly secret: Secret; readonly seconds: number }> {
    const { store, clock } = this.#parts;
    const { via } = caller;
    const now = clock.now();
    const { hash, text } = mint('consumer_session');
    const previousSession = await store.consumerSessions.get(caller.applicationId, via.id);
    if (!previousSession || !(await store.consumerSessions.recordProof(via.id, { hash, authTime: now, acr }, now)))
      throw notFound('Session', via.id);
    this.#notifyInvalidated([previousSession.hash]);
    return {
      secret: text,
      seconds: Math.max(1, Math.floor((previousSession.expiresAt.getTime() - now.getTime()) / 1000)),
    };
  }

  /**
   * Removes the consumer's sessions from the caches, because the proofs of identity that the consumer can give have
   * changed.
   */
  async refreshCaches(consumer: ConsumerId): Promise<void> {
    this.#notifyInvalidated(await this.#parts.store.consumerSessions.invalidateCaches(consumer));
  }

  /** Ends the session that the code opened, because the code has been used a second time. */
  async #endReplayedSession({ id, codeHash }: ConsumerSignInRow, source: RequestSource): Promise<void> {
    const { store } = this.#parts;
    const currentSignIn = codeHash && (await store.consumerSignIns.byCode(codeHash));
    const session =
      currentSignIn?.sessionId &&
      (await store.consumerSessions.get(currentSignIn.applicationId, currentSignIn.sessionId));
    if (currentSignIn?.id === id && session && !session.revokedAt)
      await this.#end(session, 'consumer.session.replayed', source);
  }

  async #end(row: ConsumerSessionRow, action: 'consumer.session.replayed', source: RequestSource): Promise<void> {
    const { store, audit, clock } = this.#parts;
    const hashes = await store.atomically(async trx => {
      const revokedHashes = await trx.consumerSessions.revoke(row.consumerId, { only: row.id }, clock.now());
      const target = { kind: 'consumer_session', id: row.id };
      const entry = { action, applicationId: row.applicationId, target, outcome: 'refused' } as const;
      await audit.record({ ...entry, actor: { kind: 'anonymous' }, ...source }, trx);
      return revokedHashes;
    });
    this.#notifyInvalidated(hashes);
  }

  #notifyInvalidated(hashes: readonly Buffer[]): void {
    for (const hash of hashes) this.#parts.onTokenInvalidated(hash.toString('hex'));
  }
}

interface AuthenticatedConsumer {
  readonly consumer: ConsumerRow;
  readonly acr: Acr;
  readonly authTime: Date;
}

/** Returns the tokens, if there is a refresh token. Otherwise returns the access token as a cookie. */
function openedSessionOf(
  { consumer, acr, authTime }: AuthenticatedConsumer,
  expiresIn: number,
  accessCredential: MintedCredential,
  refreshCredential?: MintedCredential,
): OpenedSession {
  const commonFields = { expiresIn, consumer: consumerIdentityOf(consumer), acr, authTime: secondsOf(authTime) };
  if (!refreshCredential)
    return { tokens: commonFields, cookie: { secret: accessCredential.text, seconds: expiresIn } };
  const tokenPair = { accessToken: accessCredential.text.reveal(), refreshToken: refreshCredential.text.reveal() };
  return { tokens: { ...tokenPair, ...commonFields } };
}

export const consumerIdentityOf = ({ id, providerId, subject, createdAt }: ConsumerRow) => ({
  ...{ id, providerId, subject, createdAt: createdAt.toISOString() },
});

const deviceOf = (row: ConsumerSessionRow, ownId: ConsumerSessionId): ConsumerDevices['data'][number] => ({
  ...{ id: row.id, isThis: row.id === ownId, providerId: row.providerId, acr: row.acr },
  ...{ createdAt: row.createdAt.toISOString(), expiresAt: sessionEndOf(row).toISOString() },
  ...(row.lastUsedAt ? { lastUsedAt: row.lastUsedAt.toISOString() } : {}),
  ...(row.lastUsedIp === undefined ? {} : { lastUsedIp: row.lastUsedIp }),
  ...(row.userAgent === undefined ? {} : { userAgent: row.userAgent }),
});

/** Returns when the consumer session ends. Without a refresh token, it ends when its access token expires. */
const sessionEndOf = ({ refreshHash, refreshExpiresAt, expiresAt }: ConsumerSessionRow): Date =>
  refreshHash ? refreshExpiresAt : expiresAt;

const secondsOf = (time: Date): number => Math.floor(time.getTime() / 1000);

const earlierOf = (one: Date, other: Date): Date => (one < other ? one : other);
