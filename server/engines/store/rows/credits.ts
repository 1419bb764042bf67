// Credit: balances, reservations and entries of the ledger. All amounts are integers of micro-credits below 2^53.
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
import type { CreditRates, Metered } from '../../../kit/metered-cost.ts';

/** The books of an account. They add up to 0: what came from `funding` and `promo` is in the other three. */
export interface BalanceRow {
  readonly accountId: AccountId;
  readonly funding: number;
  readonly available: number;
  readonly reserved: number;
  readonly revenue: number;
  readonly promo: number;
  /** `credit.low` was written, and the credit has not been above the threshold since. */
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
  /** The session or the invocation. */
  readonly purposeId: string;
  readonly keyId?: KeyId;
  readonly operationId?: string;
  readonly amount: number;
  readonly captured: number;
  readonly status: ReservationStatus;
  /** The rates when the hold was made. A change of the settings does not change the cost of a running session. */
  readonly rateBrowserSecond: number;
  readonly rateEgressMegabyte: number;
  /** What was metered at `meteredAt`. */
  readonly seconds: number;
  readonly bytes: number;
  readonly createdAt: Date;
  /** When a hold whose outcome is unknown is given back. */
  readonly expiresAt?: Date;
  readonly meteredAt?: Date;
  /** When the use is metered next. */
  readonly dueAt?: Date;
  /** Since when the hold could not be extended. */
  readonly lowAt?: Date;
  readonly settledAt?: Date;
}

/** What a transaction holds for the work that it admits. */
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

export type EntryType = 'fund' | 'grant' | 'hold' | 'extend' | 'capture' | 'release' | 'expire';

/** An entry: what it adds to each book. */
export interface EntryRow {
  readonly id: CreditEntryId;
  readonly accountId: AccountId;
  readonly applicationId?: ApplicationId;
  readonly type: EntryType;
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

export type Legs = Partial<Pick<EntryRow, 'funding' | 'available' | 'reserved' | 'revenue' | 'promo'>>;

/** What a reservation covers after its use was metered. */
export interface Metering {
  readonly metered: Metered;
  readonly cost: number;
  /** What the hold should amount to from now on. */
  readonly target: number;
  readonly at: Date;
  /** When the use is metered again. */
  readonly dueAt: Date;
}

/** What a session has used, according to the database. */
export interface MeteredSession {
  readonly startedAt?: Date;
  readonly expiresAt: Date;
  readonly isEnding: boolean;
  readonly bytes: number;
}

export interface CreditRows {
  /** Held reservations of this host's sessions whose use is due to be metered. */
  due(host: HostId, now: Date, batch: number): Promise<ReservationRow[]>;
  /**
   * Meters one session in a transaction, according to the plan made from its locked reservation. Writes
   * `session.credit_low` when the hold cannot be extended for the first time. Undefined if the reservation was settled.
   */
  meter(
    reservation: Pick<ReservationRow, 'purposeId'>,
    plan: (reservation: ReservationRow, session: MeteredSession) => Metering,
  ): Promise<{ readonly lowSince?: Date; readonly isEnding: boolean } | undefined>;
  /** Writes `credit.exhausted` to the session. */
  exhausted(session: SessionId, at: Date): Promise<void>;
  /**
   * Writes `credit.low` once to a running session of each account of this host whose available credit is below the
   * threshold, and remembers that until there is more credit. Returns the number of accounts.
   */
  tellLow(host: HostId, threshold: number, at: Date): Promise<number>;
}

export interface EntryFilter {
  readonly type?: EntryType;
  /** Later than this time. */
  readonly after?: Date;
  /** Older than this entry. */
  readonly before?: CreditEntryId;
  readonly limit: number;
}

/** What was called and captured in a period, by day, operation or agent key. */
export interface CostRow {
  readonly of: string;
  /** The name of an agent key that still exists. */
  readonly name?: string;
  readonly calls: number;
  readonly cost: number;
  /** For invocations only. */
  readonly browserSeconds: number;
  readonly egressBytes: number;
}

export interface CreditReads {
  /** Held reservations whose outcome has remained unknown until now. */
  unknown(now: Date, batch: number): Promise<ReservationRow[]>;
  /** All zeros for an account that never had credit. */
  balance(account: AccountId): Promise<Omit<BalanceRow, 'accountId' | 'isLow'>>;
  /** What is held for an application, newest first. */
  held(application: ApplicationId, limit: number): Promise<ReservationRow[]>;
  /** What is held for an application, and what was captured for it since this time. */
  sums(application: ApplicationId, since: Date): Promise<{ readonly reserved: number; readonly captured: number }>;
  /** Newest first. */
  entries(application: ApplicationId, filter: EntryFilter): Promise<EntryRow[]>;
  /** By UTC day, operation or agent key; at most `limit` rows. */
  costs(
    application: ApplicationId,
    period: { readonly from: Date; readonly to: Date },
    by: 'day' | 'operation' | 'key',
    limit: number,
  ): Promise<CostRow[]>;
}

/** What may be changed in one transaction with its audit entry. */
export interface CreditGrants {
  /** Adds credit, and a bonus from promo. Throws a RangeError for an amount that is not a positive safe integer. */
  add(
    account: AccountId,
    type: 'fund' | 'grant',
    amount: number,
    entry: Pick<EntryRow, 'at'> & Partial<Pick<EntryRow, 'applicationId' | 'checkoutId' | 'reason'>>,
    bonus?: number,
  ): Promise<BalanceRow>;
  /** Gives back what is held for this purpose, because its outcome has remained unknown. Undefined if it was settled. */
  expire(purposeId: string, at: Date): Promise<ReservationRow | undefined>;
}
