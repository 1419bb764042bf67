// Consumers of applications: how they sign in, and their sessions.
import type {
  ApplicationId,
  ConsumerId,
  ConsumerPasskeyId,
  ConsumerSessionId,
  ConsumerSignInId,
  ConsumerTicketId,
} from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Acr } from './human-sessions.ts';

/** How the consumers of an application sign in. */
export interface IdentityRow {
  readonly applicationId: ApplicationId;
  readonly hostedMethods: readonly string[];
  readonly hostedRegistration: 'open' | 'closed';
  readonly colour?: string;
  readonly origins: readonly string[];
  readonly redirectUris: readonly string[];
  readonly sessionSeconds: number;
  readonly refreshSeconds: number;
  readonly revision: number;
  readonly updatedAt: Date;
}

export interface Identities {
  get(application: ApplicationId): Promise<IdentityRow | undefined>;
  /**
   * Replaces the row if its revision is `expectedRevision`. If `expectedRevision` is 0, inserts the row unless there is
   * one.
   */
  replace(row: IdentityRow, expectedRevision: number): Promise<boolean>;
}

export interface ConsumerRow {
  readonly id: ConsumerId;
  readonly applicationId: ApplicationId;
  readonly providerId: string;
  readonly subject: string;
  readonly email?: string;
  readonly passwordHash?: string;
  readonly displayName?: string;
  readonly locale?: string;
  readonly timezone?: string;
  readonly metadata?: JsonObject;
  readonly createdAt: Date;
  readonly lastSignedInAt?: Date;
  readonly deletedAt?: Date;
  /** The consumer that this one is linked to. Whoever signs in as this consumer acts as that consumer. */
  readonly linkedTo?: ConsumerId;
}

export type ConsumerName = Pick<ConsumerRow, 'providerId' | 'subject'>;

export type ConsumerChange = Partial<
  Pick<ConsumerRow, 'passwordHash' | 'displayName' | 'locale' | 'timezone' | 'metadata' | 'lastSignedInAt'>
>;

/**
 * Methods that read consumers return only those that are not deleted. If a name belongs to a linked consumer, they
 * return the consumer to which it is linked.
 */
export interface Consumers {
  /**
   * Inserts the row, or finds an existing one with the same subject or e-mail address. Undefined if the existing
   * consumer is deleted.
   */
  insertOrFind(row: ConsumerRow): Promise<{ readonly row: ConsumerRow; readonly isNew: boolean } | undefined>;
  get(application: ApplicationId, id: ConsumerId): Promise<ConsumerRow | undefined>;
  /** Returns the row with the e-mail address, including its password, even if the consumer is linked. */
  byEmail(application: ApplicationId, provider: string, email: string): Promise<ConsumerRow | undefined>;
  bySubject(application: ApplicationId, provider: string, subject: string): Promise<ConsumerRow | undefined>;
  /** The names of the consumer: its own provider and subject, and those of the consumers that are linked to it. */
  namesOf(application: ApplicationId, id: ConsumerId): Promise<ConsumerName[]>;
  /**
   * Links `from` to `to`: whoever signs in as `from` then acts as `to`. `to` gets the passkeys, receipts and hand-offs
   * of `from`. The consents of `from` are ended, and its data key is destroyed. The caller handles memory and consumer
   * sessions. False if one of the two consumers is already deleted or linked.
   */
  link(application: ApplicationId, pair: { readonly from: ConsumerId; readonly to: ConsumerId }): Promise<boolean>;
  change(application: ApplicationId, id: ConsumerId, change: ConsumerChange): Promise<ConsumerRow | undefined>;
  count(application: ApplicationId): Promise<number>;
  /**
   * Removes all personal data, passkeys, memory and the data key of the consumer and of consumers linked to it. Frees
   * and returns their names. Returns an empty list if the consumer is already deleted. Consumer sessions are revoked
   * separately.
   */
  erase(application: ApplicationId, id: ConsumerId, now: Date): Promise<ConsumerName[]>;
}

export interface ConsumerPasskeyRow {
  readonly id: ConsumerPasskeyId;
  readonly consumerId: ConsumerId;
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly name: string;
  readonly createdAt: Date;
  readonly lastUsedAt?: Date;
}

export interface ConsumerPasskeys {
  insert(row: ConsumerPasskeyRow, limit: number): Promise<'inserted' | 'limit_reached' | 'exists'>;
  list(consumer: ConsumerId): Promise<ConsumerPasskeyRow[]>;
  /** The passkey of a consumer of this application. */
  byCredential(application: ApplicationId, credentialId: Buffer): Promise<ConsumerPasskeyRow | undefined>;
  remove(consumer: ConsumerId, id: ConsumerPasskeyId): Promise<boolean>;
  /**
   * Records a use. False if the counter did not increase, which indicates a copied authenticator. A counter that stays
   * 0 is accepted.
   */
  recordUse(id: ConsumerPasskeyId, counter: number, at: Date): Promise<boolean>;
}

export interface ConsumerSignInRow {
  readonly id: ConsumerSignInId;
  readonly applicationId: ApplicationId;
  readonly providerId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly state?: string;
  readonly transport: 'token' | 'cookie';
  readonly loginHint?: string;
  readonly maxAge?: number;
  /** SHA-256 of the state that an OpenID provider returns. */
  readonly upstreamState?: Buffer;
  readonly upstreamUsedAt?: Date;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly consumerId?: ConsumerId;
  readonly acr?: Acr;
  readonly authTime?: Date;
  readonly idTokenSealed?: Buffer;
  readonly codeHash?: Buffer;
  readonly codeExpiresAt?: Date;
  readonly codeUsedAt?: Date;
  readonly sessionId?: ConsumerSessionId;
}

export interface SignInProof {
  readonly consumerId: ConsumerId;
  readonly acr: Acr;
  readonly authTime: Date;
  readonly idTokenSealed?: Buffer;
  readonly codeHash: Buffer;
  readonly codeExpiresAt: Date;
}

export interface ConsumerSignIns {
  insert(row: ConsumerSignInRow): Promise<void>;
  /** A sign-in that is neither complete nor expired. */
  findOpen(
    application: ApplicationId,
    provider: string,
    id: ConsumerSignInId,
    now: Date,
  ): Promise<ConsumerSignInRow | undefined>;
  /** Returns the open sign-in with this state, but only to the first call. */
  takeByState(state: Buffer, now: Date): Promise<ConsumerSignInRow | undefined>;
  /** Completes an open sign-in. Only one of several concurrent calls returns true. */
  complete(id: ConsumerSignInId, now: Date, proof: SignInProof): Promise<boolean>;
  byCode(hash: Buffer): Promise<ConsumerSignInRow | undefined>;
  /** Marks the code as used. Only one of several concurrent calls returns true. */
  useCode(id: ConsumerSignInId, now: Date, session: ConsumerSessionId): Promise<boolean>;
  removeExpired(before: Date): Promise<number>;
}

export interface ConsumerTicketRow {
  readonly id: ConsumerTicketId;
  readonly kind: 'email_code' | 'passkey';
  readonly applicationId: ApplicationId;
  /** The sign-in to which the ticket belongs, if the ticket is used on the sign-in page. */
  readonly signInId?: ConsumerSignInId;
  readonly consumerId?: ConsumerId;
  readonly email?: string;
  /** Hash of the password that is set for the consumer after the code has been entered. */
  readonly passwordHash?: string;
  readonly displayName?: string;
  readonly hash?: Buffer;
  readonly challenge?: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly usedAt?: Date;
}

export interface ConsumerTickets {
  insert(row: ConsumerTicketRow): Promise<void>;
  /** Counts an attempt to use the ticket, before the attempt is made. Returns the ticket if it is usable. */
  attempt(
    application: ApplicationId,
    id: ConsumerTicketId,
    kind: ConsumerTicketRow['kind'],
    now: Date,
    triesMax: number,
  ): Promise<ConsumerTicketRow | undefined>;
  /** Marks the ticket as used. Only one of several concurrent calls returns true. */
  use(id: ConsumerTicketId, now: Date): Promise<boolean>;
  countMailed(application: ApplicationId, email: string, since: Date): Promise<number>;
  removeExpired(before: Date): Promise<number>;
}

export interface ConsumerSessionRow {
  readonly id: ConsumerSessionId;
  readonly consumerId: ConsumerId;
  readonly applicationId: ApplicationId;
  readonly providerId: string;
  /** SHA-256 of the access token. */
  readonly hash: Buffer;
  readonly expiresAt: Date;
  /** SHA-256 of the refresh token. Absent: the session cannot be refreshed. */
  readonly refreshHash?: Buffer;
  readonly refreshExpiresAt: Date;
  readonly authTime: Date;
  readonly acr: Acr;
  readonly idTokenSealed?: Buffer;
  readonly createdAt: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
  readonly lastUsedIp?: string;
  readonly userAgent?: string;
}

/** The values that a refresh replaces. */
export type NewTokens = Pick<ConsumerSessionRow, 'hash' | 'expiresAt' | 'refreshHash'>;

export interface ConsumerSessions {
  insert(row: ConsumerSessionRow): Promise<void>;
  /**
   * Returns the session, with the strongest proof that its consumer can give. Undefined for a consumer who is deleted
   * or linked.
   */
  byHash(hash: Buffer): Promise<(ConsumerSessionRow & { readonly strongestAcr: Acr }) | undefined>;
  get(application: ApplicationId, id: ConsumerSessionId): Promise<ConsumerSessionRow | undefined>;
  /** Sessions that have not ended, newest first. */
  listActive(consumer: ConsumerId, now: Date, limit: number): Promise<ConsumerSessionRow[]>;
  /**
   * Returns the session to which this refresh token belongs or has belonged. `isCurrent`: whether this is the session's
   * current refresh token, not an earlier one.
   */
  byRefreshHash(hash: Buffer): Promise<{ readonly row: ConsumerSessionRow; readonly isCurrent: boolean } | undefined>;
  /**
   * Replaces the tokens if `hash` is still the hash of the current refresh token. Notifies all processes that the old
   * tokens are no longer valid.
   */
  refresh(id: ConsumerSessionId, hash: Buffer, tokens: NewTokens, now: Date): Promise<boolean>;
  /** Sets a new access token after a stronger proof. Notifies all processes that the old token is no longer valid. */
  recordProof(
    id: ConsumerSessionId,
    proof: Pick<ConsumerSessionRow, 'hash' | 'authTime' | 'acr'>,
    now: Date,
  ): Promise<boolean>;
  /**
   * Ends one session, or all but one, and notifies all processes. Returns the hashes of the access tokens of the ended
   * sessions.
   */
  revoke(consumer: ConsumerId, choice: ConsumerSessionChoice, now: Date): Promise<Buffer[]>;
  /** Removes the consumer's sessions from the caches of all processes. Returns the hashes of their access tokens. */
  invalidateCaches(consumer: ConsumerId): Promise<Buffer[]>;
  touch(id: ConsumerSessionId, at: Date, ip: string): Promise<void>;
  removeExpired(before: Date): Promise<number>;
}

export type ConsumerSessionChoice =
  | { readonly only: ConsumerSessionId }
  | { readonly allBut: ConsumerSessionId | undefined };
