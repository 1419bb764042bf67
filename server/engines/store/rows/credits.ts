// Credit: balances, reservations and entries of the ledger. All amounts are integers of micro-credits below 2^53.
import type {
  AccountId,
  ApplicationId,
  CheckoutId,
  CreditEntryId,
  HostId,
  KeyId,
  ReservationId,
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
  /** The rates at the hold. A change of the settings does not change what a session costs that runs. */
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
}
