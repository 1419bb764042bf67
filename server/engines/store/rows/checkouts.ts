// Checkouts: orders for credit.
import type { AccountId, ApplicationId, CheckoutId } from '../../../kit/ids.ts';

export type CheckoutStatus = 'open' | 'credited' | 'cancelled' | 'expired';

export interface CheckoutRow {
  readonly id: CheckoutId;
  /** The account that gets the credit. */
  readonly accountId: AccountId;
  readonly applicationId: ApplicationId;
  readonly openedBy: AccountId;
  readonly provider: string;
  readonly packId: string;
  /** Micro-credits that are paid for. */
  readonly amount: number;
  /** Micro-credits in addition to `amount`. */
  readonly bonus: number;
  /** Price in the smallest unit of the currency. */
  readonly price: number;
  readonly currency: string;
  /** The reference that the payment must contain. */
  readonly reference: string;
  readonly status: CheckoutStatus;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
}

export interface CheckoutRows {
  /** `limit_reached`: the application already has `openMax` open checkouts. */
  insert(row: CheckoutRow, openMax: number): Promise<'inserted' | 'limit_reached'>;
  /** The caller must check access to the application of the checkout. */
  get(id: CheckoutId): Promise<CheckoutRow | undefined>;
  /** Newest first, older than `before`. */
  list(
    application: ApplicationId,
    page: { readonly limit: number; readonly before?: CheckoutId },
  ): Promise<CheckoutRow[]>;
  /** open -> status. Undefined if the checkout was not open or has expired. */
  end(id: CheckoutId, status: 'credited' | 'cancelled', at: Date): Promise<CheckoutRow | undefined>;
  /** Ends open checkouts that have expired. Returns their number. */
  expire(now: Date, batchSize: number): Promise<number>;
}
