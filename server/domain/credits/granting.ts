// Grants credit in the name of the operator, and writes the audit entry in the same transaction.
import { MICROCREDITS_PER_CREDIT } from '../../../contract/credits.ts';
import type { BalanceRow } from '../../engines/store/rows/credits.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { Fault } from '../../kit/fault.ts';
import type { AccountId } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { BY_OPERATOR } from '../audit/by-caller.ts';

/**
 * 2^53 - 1 micro-credits, which is the limit of the database for each book of the ledger, such as `available` or
 * `promo`.
 */
const BALANCE_MAX = Number.MAX_SAFE_INTEGER;
const CREDITS_MAX_TEXT = Math.floor(BALANCE_MAX / MICROCREDITS_PER_CREDIT).toLocaleString('en-US');
const REASON_CHARACTERS_MAX = 200;

export interface GrantingParts {
  readonly store: Pick<Store, 'atomically' | 'credits'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
}

/**
 * Grants credit: adds the amount, in micro-credits, to the balance, and records it in the book `promo`. The reason is
 * kept with the ledger entry and in the audit log.
 */
export async function grantCredit(
  { store, audit, clock }: GrantingParts,
  account: AccountId,
  amount: number,
  reason: string,
): Promise<BalanceRow> {
  if (reason.trim() === '' || reason.length > REASON_CHARACTERS_MAX)
    throw new Fault(
      'invalid_request',
      `The reason must have 1 to ${REASON_CHARACTERS_MAX} characters, and must not be blank.`,
    );
  const { available, promo } = await store.credits.balance(account);
  if (available + amount > BALANCE_MAX || amount - promo > BALANCE_MAX)
    throw new Fault(
      'invalid_request',
      `Neither the balance of an account nor the total of its grants can exceed ${CREDITS_MAX_TEXT} credits. Grant a smaller amount.`,
    );
  return store.atomically(async trx => {
    const balance = await trx.credits.add(account, 'grant', amount, { at: clock.now(), reason });
    await audit.record(
      {
        ...BY_OPERATOR,
        ...({ action: 'credit.granted', outcome: 'success', accountId: account } as const),
        target: { kind: 'account', id: account },
        details: { amount, reason },
      },
      trx,
    );
    return balance;
  });
}
