// Sessions of people who signed in with a browser.
import type { AccountId, HumanSessionId } from '../../../kit/ids.ts';

/** What a person proved who they are with, weakest first. */
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
  /** When it expires unless it is used again. */
  readonly idleExpiresAt: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
  readonly lastUsedIp?: string;
  readonly userAgent?: string;
}

/** What a new proof changes. The cookie changes with it. */
export type HumanSessionProof = Pick<HumanSessionRow, 'hash' | 'authTime' | 'acr'>;

export interface HumanSessions {
  insert(row: HumanSessionRow): Promise<void>;
  /** With the strongest proof that the account is able to give. */
  byHash(hash: Buffer): Promise<(HumanSessionRow & { readonly strongestAcr: Acr }) | undefined>;
  /** Valid ones, newest first. */
  list(account: AccountId, now: Date): Promise<HumanSessionRow[]>;
  /** Gives a valid session a new cookie, and notifies about the old one in the same transaction. False if it is not valid. */
  renew(account: AccountId, id: HumanSessionId, now: Date, proof: HumanSessionProof): Promise<boolean>;
  /** Marks it revoked and notifies in one transaction. False if it is not valid. */
  revoke(account: AccountId, id: HumanSessionId, now: Date): Promise<boolean>;
  /** The same for all of an account but one. Returns how many. */
  revokeOthers(account: AccountId, kept: HumanSessionId | undefined, now: Date): Promise<number>;
  /** Drops all of an account from the caches, because its strongest proof has changed. */
  announce(account: AccountId): Promise<void>;
  touch(id: HumanSessionId, at: Date, ip: string, idleExpiresAt: Date): Promise<void>;
}
