// Single-use tickets for people who are not signed in yet: the setup link of the first start, a code sent by e-mail,
// the challenge for a passkey, or the permission to present a second factor.
import type { AccountId, TicketId } from '../../../kit/ids.ts';

export type TicketKind = 'setup' | 'email_code' | 'passkey' | 'second_factor';

export interface TicketRow {
  readonly id: TicketId;
  readonly kind: TicketKind;
  readonly accountId?: AccountId;
  readonly email?: string;
  /** SHA-256 of the secret, for kinds that have one. */
  readonly hash?: Buffer;
  /** The challenge for a passkey. */
  readonly challenge?: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly usedAt?: Date;
}

export interface SignInTickets {
  insert(row: TicketRow): Promise<void>;
  /**
   * Returns a ticket that is neither used nor expired and has had fewer than `triesMax` attempts. Counts the attempt
   * before it is made, so that concurrent attempts are counted.
   */
  attempt(id: TicketId, kind: TicketKind, now: Date, triesMax: number): Promise<TicketRow | undefined>;
  byHash(hash: Buffer, kind: TicketKind, now: Date): Promise<TicketRow | undefined>;
  /** Marks the ticket as used. Only one of several concurrent calls returns true. */
  use(id: TicketId, now: Date): Promise<boolean>;
  /** The number of tickets issued for an e-mail address or an account since a time. */
  count(kind: TicketKind, subject: { email?: string; accountId?: AccountId }, since: Date): Promise<number>;
  removeExpired(before: Date): Promise<number>;
}
