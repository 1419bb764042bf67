// Credit: balances, reservations and entries of the ledger. All amounts are integers below 2^53, in micro-credits.
import type {
  AccountId,
  ApplicationId,
  CheckoutId,
  CreditEntryId,
  HostId,
  KeyId,
  ReservationId,
  SessionId,
} from '../../../kit/ids.ts';
import type { CreditRates, MeteredUse } from '../../../kit/metered-cost.ts';

/**
 * The balances of an account, which add up to 0. `funding` and `promo` are negative: their absolute values are the
 * credit that came from them. The other three balances show where this credit is now.
 */
export interface BalanceRow {
  readonly accountId: AccountId;
  readonly funding: number;
  readonly available: number;
  readonly reserved: number;
  readonly revenue: number;
  readonly promo: number;
  /** Whether the event `credit.low` was recorded, and the credit has not been at or above the threshold since then. */
  readonly isLow: boolean;
}

export type ReservationStatus = 'held' | 'captured' | 'released' | 'expired';
export type PurposeKind = 'session' | 'invocation';

export interface ReservationRow {
  readonly id: ReservationId;
  readonly accountId: AccountId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly purposeKind: PurposeKind;
  /** The id of the session or invocation. */
  readonly purposeId: string;
  readonly keyId?: KeyId;
  readonly operationId?: string;
  readonly amount: number;
  readonly captured: number;
  readonly status: ReservationStatus;
  /**
   * The rates at the time when the hold was made. A change of the settings does not change the cost of a running
   * session.
   */
  readonly rateBrowserSecond: number;
  readonly rateEgressMegabyte: number;
  /** The usage that had been metered up to `meteredAt`. */
  readonly seconds: number;
  readonly bytes: number;
  readonly createdAt: Date;
  /** When the held credit is given back if the outcome is still unknown. */
  readonly expiresAt?: Date;
  readonly meteredAt?: Date;
  /** When the usage is metered next. */
  readonly dueAt?: Date;
  /** When the credit first did not suffice to extend the hold. Undefined if the last extension succeeded. */
  readonly lowAt?: Date;
  readonly settledAt?: Date;
}

/** Credit that a transaction holds for the work that it admits. */
export interface NewHold {
  readonly id: ReservationId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly purposeKind: PurposeKind;
  readonly purposeId: string;
  readonly keyId?: KeyId;
  readonly operationId?: string;
  readonly amount: number;
  readonly rates: CreditRates;
  readonly at: Date;
  readonly dueAt?: Date;
}

export interface Shortage {
  readonly required: number;
  readonly available: number;
}

export type CreditEntryType = 'fund' | 'grant' | 'hold' | 'extend' | 'capture' | 'release' | 'expire';

/** A ledger entry, with the amount that it adds to each book. */
export interface CreditEntryRow {
  readonly id: CreditEntryId;
  readonly accountId: AccountId;
  readonly applicationId?: ApplicationId;
  readonly type: CreditEntryType;
  readonly funding: number;
  readonly available: number;
  readonly reserved: number;
  readonly revenue: number;
  readonly promo: number;
  readonly reservationId?: ReservationId;
  readonly checkoutId?: CheckoutId;
  readonly reason?: string;
  readonly at: Date;
}

/** The amounts that an entry adds to the books, by book. Nothing is added to a book that is absent. */
export type Legs = Partial<Pick<CreditEntryRow, 'funding' | 'available' | 'reserved' | 'revenue' | 'promo'>>;

/** The result of metering: the use that was metered, and the amount that should be held from now on. */
export interface Metering {
  readonly metered: MeteredUse;
  readonly cost: number;
  /** The amount that should be held from now on. */
  readonly target: number;
  readonly at: Date;
  /** When the usage is metered next. */
  readonly dueAt: Date;
}

/** The use of a session, according to the database. */
export interface MeteredSession {
  readonly startedAt?: Date;
  readonly expiresAt: Date;
  readonly isEnding: boolean;
  readonly bytes: number;
}

export interface CreditRows {
  /** Held reservations of this host's sessions whose use is due to be metered. */
  due(host: HostId, now: Date, batchSize: number): Promise<ReservationRow[]>;
  /**
   * Meters one session in a transaction. `plan` decides the result from the locked reservation. The first time that the
   * hold cannot be extended, writes `session.credit_low`. `lowSince`: the time since which the hold could not be
   * extended, absent if it was extended. Undefined if the reservation was settled.
   */
  meter(
    reservation: Pick<ReservationRow, 'purposeId'>,
    plan: (reservation: ReservationRow, session: MeteredSession) => Metering,
  ): Promise<{ readonly lowSince?: Date; readonly isEnding: boolean } | undefined>;
  /** Writes the event `credit.exhausted` for the session. */
  recordExhaustedCredit(session: SessionId, at: Date): Promise<void>;
  /**
   * For each account whose available credit has fallen below the threshold, writes `credit.low` to one of the account's
   * running sessions on this host. The event is written again only after the credit has been at or above the threshold.
   * Returns the number of accounts whose credit has crossed the threshold in either direction.
   */
  recordLowCredit(host: HostId, threshold: number, at: Date): Promise<number>;
}

export interface CreditEntryFilter {
  readonly type?: CreditEntryType;
  /** Only entries later than this time. */
  readonly after?: Date;
  /** Only entries older than this one. */
  readonly before?: CreditEntryId;
  readonly limit: number;
}

/** The number of calls in a period and their cost, for one day, one operation or one agent key. */
export interface CostRow {
  /** The UTC day, or the id of the operation or of the agent key. */
  readonly of: string;
  /** The name of the agent key, if it still exists. */
  readonly name?: string;
  readonly calls: number;
  readonly cost: number;
  /** Like `egressBytes`, of invocations only: sessions outside invocations are not included. */
  readonly browserSeconds: number;
  readonly egressBytes: number;
}

export interface CreditReads {
  /** Held reservations with an unknown outcome that have reached `expiresAt`. */
  listExpiredHolds(now: Date, batchSize: number): Promise<ReservationRow[]>;
  /** Returns zeros for an account that never had credit. */
  balance(account: AccountId): Promise<Omit<BalanceRow, 'accountId' | 'isLow'>>;
  /** Reservations held for an application, newest first. */
  listHeld(application: ApplicationId, limit: number): Promise<ReservationRow[]>;
  /** Returns how much is held for an application, and how much was captured for it since this time. */
  sums(application: ApplicationId, since: Date): Promise<{ readonly reserved: number; readonly captured: number }>;
  /** Newest first. */
  entries(application: ApplicationId, filter: CreditEntryFilter): Promise<CreditEntryRow[]>;
  /** Returns costs by UTC day, operation or agent key; at most `limit` rows. */
  costs(
    application: ApplicationId,
    period: { readonly from: Date; readonly to: Date },
    groupBy: 'day' | 'operation' | 'key',
    limit: number,
  ): Promise<CostRow[]>;
}

/** Changes to credit that can be made in one transaction with their audit entry. */
export interface CreditGrants {
  /**
   * Adds credit, and a bonus from the book `promo`. Throws a RangeError for an amount that is not a positive safe
   * integer.
   */
  add(
    account: AccountId,
    type: 'fund' | 'grant',
    amount: number,
    entry: Pick<CreditEntryRow, 'at'> & Partial<Pick<CreditEntryRow, 'applicationId' | 'checkoutId' | 'reason'>>,
    bonus?: number,
  ): Promise<BalanceRow>;
  /**
   * Gives back the credit that is held for this purpose, because the outcome has remained unknown. Undefined if the
   * reservation was settled.
   */
  expire(purposeId: string, at: Date): Promise<ReservationRow | undefined>;
}
