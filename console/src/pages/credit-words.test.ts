import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moneyWords, readCreditView, usageQueryOf } from './credit-words.ts';

test('readCreditView reads valid values and omits defaults and invalid values', () => {
  assert.deepEqual(readCreditView({ by: 'key', period: 'month', type: 'fund', since: 'week' }), {
    ...{ by: 'key', period: 'month', type: 'fund', since: 'week' },
  });
  assert.deepEqual(readCreditView({ by: 'day', period: 'week', type: 'toString', since: 7, more: 1 }), {});
});

test('usageQueryOf selects the last 7 or 30 days including today', () => {
  const nowMs = Date.parse('2026-11-25T12:00:00Z');
  assert.deepEqual(usageQueryOf({}, nowMs), { by: 'day', from: '2026-11-19T12:00:00.000Z' });
  assert.equal(usageQueryOf({ period: 'month' }, nowMs).from, '2026-10-27T12:00:00.000Z');
});

test('moneyWords formats a price with the decimal places of its currency', () => {
  assert.match(moneyWords({ amount: 4500, currency: 'EUR' }), /45\.00|45,00/);
  assert.match(moneyWords({ amount: 4500, currency: 'JPY' }), /4[,.]?500/);
});
