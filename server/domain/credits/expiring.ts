// Gives back the credit that is held for invocations whose outcome stayed unknown, and writes the audit entry in the
// same transaction.
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Audit } from '../audit/audit.ts';
import { BY_SERVICE } from '../audit/by-caller.ts';

const BATCH_MAX = 100;

export interface ExpiringParts {
  readonly store: Pick<Store, 'atomically' | 'credits'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
}

/** Returns the number of holds that had expired, including those that were settled meanwhile. */
export async function expireHolds({ store, audit, clock }: ExpiringParts): Promise<number> {
  const expiredHolds = await store.credits.listExpiredHolds(clock.now(), BATCH_MAX);
  for (const { purposeId, purposeKind, applicationId, amount } of expiredHolds)
    await store.atomically(async trx => {
      if (!(await trx.credits.expire(purposeId, clock.now()))) return;
      const target = { kind: purposeKind, id: purposeId };
      const entry = {
        action: 'credit.expired',
        applicationId,
        target,
        outcome: 'success',
        details: { amount },
      } as const;
      await audit.record({ ...BY_SERVICE, ...entry }, trx);
    });
  return expiredHolds.length;
}
