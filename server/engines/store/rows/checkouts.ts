// Checkouts: orders of credit.
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
  /** Micro-credits on top. */
  readonly bonus: number;
  /** In the smallest unit of the currency. */
  readonly price: number;
  readonly currency: string;
  /** What the payment names. */
  readonly reference: string;
  readonly returnTo?: string;
  readonly status: CheckoutStatus;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
}
