import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { capturedOf, reservationOf } from './cost.ts';

const RATES = { browserSecond: 100, egressMegabyte: 10 };
const NONE = { browserSecond: 0, egressMegabyte: 0 };
const metered = { seconds: 6, bytes: 1_500_000 };
const METERS = 615;

for (const [what, input, maxCost, amount] of [
  ['the time limit of its session and 50 megabytes', { timeoutMs: 30_000 }, undefined, 90 * 100 + 500],
  ['the same with the default time limit', {}, undefined, 90 * 100 + 500],
  ['maxCost, if that is less', {}, 700, 700],
  ['the estimate, if maxCost is more', {}, 1_000_000, 9500],
  ['nothing in a session that pays for itself', { sessionId: 's' }, undefined, 0],
] as const)
  test(`a call holds ${what}`, () => assert.equal(reservationOf(RATES, input, maxCost), amount));

test('a call holds nothing with rates of 0, whatever its maxCost', () => assert.equal(reservationOf(NONE, {}, 0), 0));

test('a maxCost that allows no second is refused', () =>
  assert.throws(
    () => reservationOf(RATES, {}, 99),
    error => isFault(error, 'invalid_request'),
  ));

for (const [what, ended, captured] of [
  ['a success captures price and meters', { state: 'succeeded' }, METERS + 50],
  ['a failure captures the meters, not the price', { state: 'failed', phase: 'during' }, METERS],
  ['a failure before the start captures nothing', { state: 'failed', phase: 'before' }, 0],
  ['a cancelled call captures nothing', { state: 'cancelled' }, 0],
  ['an unknown outcome captures and gives back nothing', { state: 'ambiguous' }, undefined],
  ['no more is captured than was held', { state: 'succeeded', reserved: 300 }, 300],
] as const)
  test(what, () => assert.equal(capturedOf(RATES, { metered, reserved: 10_000, price: 50, ...ended }), captured));
