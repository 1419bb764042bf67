import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CheckoutRow } from '../../engines/store/rows/checkouts.ts';
import { addMs, type Clock, systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { type AccountId, type ApplicationId, type CheckoutId, newId } from '../../kit/ids.ts';
import { notFound } from '../faults.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { TopUps, type TopUpsParts } from './topups.ts';

const STARTED_AT = new Date('2026-11-20T10:00:00.000Z');
/**
 * When the checkout is credited, in milliseconds after `STARTED_AT`: shortly after a full second, so that polling once
 * a second or less often would notice the credit much later.
 */
const CREDITED_AFTER_MS = 1_010;
const REPORT_DELAY_MAX_MS = 200;

const row: CheckoutRow = {
  ...{
    id: newId<CheckoutId>(STARTED_AT),
    applicationId: newId<ApplicationId>(STARTED_AT),
    accountId: newId<AccountId>(STARTED_AT),
  },
  ...{ openedBy: newId<AccountId>(STARTED_AT), provider: 'manual', packId: 'p50', amount: 50_000_000, bonus: 0 },
  ...{ price: 4500, currency: 'EUR', reference: 'ABCDEFGH23', status: 'open' },
  ...{ createdAt: STARTED_AT, expiresAt: addMs(STARTED_AT, 86_400_000) },
};

test('returns a checkout to a waiting caller within 200 ms after its status has changed', async () => {
  let nowMs = 0;
  const clock: Clock = {
    now: () => addMs(STARTED_AT, nowMs),
    monotonicMs: () => nowMs,
    sleep: async ms => {
      nowMs += ms;
    },
  };
  const get = async (): Promise<CheckoutRow> =>
    nowMs < CREDITED_AFTER_MS ? row : { ...row, status: 'credited', endedAt: addMs(STARTED_AT, CREDITED_AFTER_MS) };
  const topUps = new TopUps({
    ...{ clock, packs: [], paymentText: '', store: { checkouts: { get } } },
    applications: { canAccess: async () => true, require: async () => ({ id: row.applicationId }) },
  } as unknown as TopUpsParts);
  const { status } = await topUps.read({} as AccountCaller, row.id, { wait: 50 }, new AbortController().signal);
  assert.equal(status, 'credited');
  assert.ok(nowMs - CREDITED_AFTER_MS < REPORT_DELAY_MAX_MS, `${nowMs - CREDITED_AFTER_MS} ms later`);
});

test('reports not_found if the caller cannot access the application of the checkout, but not if the database fails', async () => {
  const readWith = (applications: object) => {
    const store = { checkouts: { get: async () => row } };
    const topUps = new TopUps({ clock: systemClock, store, applications } as unknown as TopUpsParts);
    return topUps.read({} as AccountCaller, row.id, {}, new AbortController().signal);
  };
  const refuse = () => Promise.reject(notFound('Application', row.applicationId));
  const foreignRead = readWith({ canAccess: async () => false, require: refuse });
  await assert.rejects(foreignRead, error => isFault(error, 'not_found') && error.message.startsWith('Checkout'));
  const fail = () => Promise.reject(new Error('the database is down'));
  await assert.rejects(readWith({ canAccess: fail, require: fail }), /the database is down/);
});
