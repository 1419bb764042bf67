import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { capturedOf, reservationOf } from './cost.ts';

const RATES = { browserSecond: 100, egressMegabyte: 10 };
const NONE = { browserSecond: 0, egressMegabyte: 0 };
const measured = { seconds: 6, bytes: 1_500_000 };
const METERS = 615;

for (const [what, price, input, maxCost, amount] of [
  ['the time limit of its session and 50 megabytes', 0, { timeoutMs: 30_000 }, undefined, 90 * 100 + 500],
  ['the time of its hand-off steps', 0, { steps: [{ do: 'handoff', ttlSeconds: 60 }] }, undefined, 750 * 100 + 500],
  ['the same with the default time limit', 0, {}, undefined, 90 * 100 + 500],
  ['its price as well', 40, {}, undefined, 90 * 100 + 540],
  ['maxCost if that is lower than the estimate', 40, {}, 700, 700],
  ['the estimate if maxCost is higher', 0, {}, 1_000_000, 9500],
  ['nothing in an existing session', 0, { sessionId: 's' }, undefined, 0],
  ['only its price in an existing session', 40, { sessionId: 's' }, 50, 40],
  ['no more than the maximum amount of the ledger', Number.MAX_SAFE_INTEGER, {}, undefined, Number.MAX_SAFE_INTEGER],
] as const)
  test(`a call holds ${what}`, () => assert.equal(reservationOf(RATES, price, input, maxCost), amount));

test('a call holds no credit if all rates are 0, regardless of its price and maxCost', () =>
  assert.equal(reservationOf(NONE, 40, {}, 0), 0));

for (const [what, price, input, maxCost] of [
  ['less than one second', 0, {}, 99],
  ['less than one second in addition to the price', 40, {}, 139],
  ['less than the price in an existing session', 40, { sessionId: 's' }, 39],
] as const)
  test(`refuses a maxCost that allows ${what}`, () =>
    assert.throws(
      () => reservationOf(RATES, price, input, maxCost),
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
  test(what, () =>
    assert.equal(capturedOf(RATES, { metered: measured, reserved: 10_000, price: 50, ...ended }), captured),
  );
