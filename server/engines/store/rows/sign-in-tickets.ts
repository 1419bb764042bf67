// What was given to somebody who is not signed in yet, to be used once: the link of the first start, a code by e-mail, the challenge
// of a passkey, the right to give a second factor.
import type { AccountId, TicketId } from '../../../kit/ids.ts';

export type TicketKind = 'setup' | 'email_code' | 'passkey' | 'second_factor';

export interface TicketRow {
  readonly id: TicketId;
  readonly kind: TicketKind;
  readonly accountId?: AccountId;
  readonly email?: string;
  /** SHA-256 of the secret, for kinds that have one. */
  readonly hash?: Buffer;
  /** Of a passkey. */
  readonly challenge?: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly usedAt?: Date;
}

export interface SignInTickets {
  insert(row: TicketRow): Promise<void>;
  /**
   * One that is neither used nor expired, for one of `triesMax` attempts. The attempt is counted before it is made, so that attempts
   * at the same time count too.
   */
  attempt(id: TicketId, kind: TicketKind, now: Date, triesMax: number): Promise<TicketRow | undefined>;
  byHash(hash: Buffer, kind: TicketKind, now: Date): Promise<TicketRow | undefined>;
  /** Marks it used. Of concurrent calls one returns true. */
  use(id: TicketId, now: Date): Promise<boolean>;
  /** Those of an e-mail address or an account since a time, to limit them. */
  count(kind: TicketKind, of: { email?: string; accountId?: AccountId }, since: Date): Promise<number>;
  removeExpired(before: Date): Promise<number>;
}
