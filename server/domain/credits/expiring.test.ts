import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import type { AuditEvent } from '../audit/audit.ts';
import { type ExpiringParts, expireHolds } from './expiring.ts';

test('records each expired hold with the service as its actor, and skips a hold that was settled after the holds were listed', async () => {
  const holdOf = (purposeId: string) => ({ purposeId, purposeKind: 'invocation', applicationId: 'shop', amount: 7 });
  const trx = { credits: { expire: async (purposeId: string) => (purposeId === 'open' ? {} : undefined) } };
  const store = {
    credits: { listExpiredHolds: async () => ['open', 'settled'].map(holdOf) },
    atomically: (work: (transaction: unknown) => Promise<void>) => work(trx),
  } as unknown as ExpiringParts['store']; // Contains only the methods that `expireHolds` calls.
  const events: AuditEvent[] = [];
  const audit = { record: async (event: AuditEvent) => void events.push(event) };
  await expireHolds({ store, audit, clock: systemClock });
  assert.deepEqual(events, [
    {
      ...{ actor: { kind: 'service' }, action: 'credit.expired', applicationId: 'shop', outcome: 'success' },
      ...{ target: { kind: 'invocation', id: 'open' }, details: { amount: 7 } },
    },
  ]);
});
