import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isEnforced, meteredCost, secondsRoundedUp } from './metered-cost.ts';

const RATES = { browserSecond: 7, egressMegabyte: 3 };

for (const [seconds, bytes, cost] of [
  [0, 0, 0],
  [1, 0, 7],
  [0, 1, 1],
  [0, 333_333, 1],
  [0, 333_334, 2],
  [10, 1_000_000, 73],
] as const)
  test(`meteredCost returns ${cost} for ${seconds} seconds and ${bytes} bytes`, () =>
    assert.equal(meteredCost(RATES, { seconds, bytes }), cost));

test('limits a cost to the largest safe integer', () =>
  assert.equal(
    meteredCost({ browserSecond: 1_000_000_000, egressMegabyte: 1_000_000_000 }, { seconds: 2 ** 40, bytes: 2 ** 50 }),
    Number.MAX_SAFE_INTEGER,
  ));

for (const [from, to, seconds] of [
  [undefined, 5000, 0],
  [0, 0, 0],
  [0, 1, 1],
  [0, 1000, 1],
  [0, 1001, 2],
  [5000, 0, 0],
] as const)
  test(`secondsRoundedUp returns ${seconds} for the time from ${from ?? 'an undefined start'} to ${to} ms`, () =>
    assert.equal(secondsRoundedUp(from === undefined ? undefined : new Date(from), new Date(to)), seconds));

test('isEnforced returns true if any rate is above 0', () => {
  assert.equal(isEnforced({ browserSecond: 0, egressMegabyte: 0 }), false);
  assert.equal(isEnforced({ browserSecond: 0, egressMegabyte: 1 }), true);
});
