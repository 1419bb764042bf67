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
  /** Gives a valid session a new cookie, and notifies about the old one in the same transaction. Returns the old hash. */
  renew(account: AccountId, id: HumanSessionId, now: Date, proof: HumanSessionProof): Promise<Buffer | undefined>;
  /** Marks valid ones revoked and notifies in one statement: one session, or all but one. Returns their hashes. */
  revoke(account: AccountId, which: SessionChoice, now: Date): Promise<Buffer[]>;
  /** Drops all of an account from the caches, because its strongest proof has changed. Returns their hashes. */
  announce(account: AccountId): Promise<Buffer[]>;
  touch(id: HumanSessionId, at: Date, ip: string, idleExpiresAt: Date): Promise<void>;
}

export type SessionChoice = { readonly only: HumanSessionId } | { readonly allBut: HumanSessionId | undefined };
