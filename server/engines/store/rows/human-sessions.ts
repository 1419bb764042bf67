// Human sessions: browsers in which a person is signed in.
import type { AccountId, HumanSessionId } from '../../../kit/ids.ts';

/** How a person has proved their identity, from the weakest proof to the strongest. */
export type Acr = 'berth:1' | 'berth:2' | 'phr';

export interface HumanSessionRow {
  readonly id: HumanSessionId;
  readonly accountId: AccountId;
  /** SHA-256 of the cookie. */
  readonly hash: Buffer;
  readonly authTime: Date;
  readonly acr: Acr;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** When the session expires unless it is used again. */
  readonly idleExpiresAt: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
  readonly lastUsedIp?: string;
  readonly userAgent?: string;
}

/** The values that a new proof changes. The cookie is always replaced. */
export type HumanSessionProof = Pick<HumanSessionRow, 'hash' | 'authTime' | 'acr'>;

export interface HumanSessions {
  insert(row: HumanSessionRow): Promise<void>;
  /** The result includes the strongest proof that the account can give. */
  byHash(hash: Buffer): Promise<(HumanSessionRow & { readonly strongestAcr: Acr }) | undefined>;
  /** Valid sessions, newest first. */
  list(account: AccountId, now: Date): Promise<HumanSessionRow[]>;
  /**
   * Gives a valid session a new cookie, and in the same transaction notifies all processes that the old cookie is no
   * longer valid. Returns the hash of the old cookie.
   */
  renew(account: AccountId, id: HumanSessionId, now: Date, proof: HumanSessionProof): Promise<Buffer | undefined>;
  /**
   * Revokes one valid session, or all but one, and notifies all processes in the same statement. Returns the hashes of
   * the revoked sessions' cookies.
   */
  revoke(account: AccountId, choice: HumanSessionChoice, now: Date): Promise<Buffer[]>;
  /**
   * Removes all sessions of the account from the caches of all processes, because the account's strongest proof has
   * changed. Returns the hashes of the sessions' cookies.
   */
  invalidateCaches(account: AccountId): Promise<Buffer[]>;
  touch(id: HumanSessionId, at: Date, ip: string, idleExpiresAt: Date): Promise<void>;
}

export type HumanSessionChoice = { readonly only: HumanSessionId } | { readonly allBut: HumanSessionId | undefined };
