import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { captureAmountOf, reservationOf } from './cost.ts';

const RATES = { browserSecond: 100, egressMegabyte: 10 };
const NONE = { browserSecond: 0, egressMegabyte: 0 };
const meteredUse = { seconds: 6, bytes: 1_500_000 };
const METERED_COST = 615;

for (const [what, price, input, maxCost, amount] of [
  ['credit for the time limit of its session and 50 megabytes', 0, { timeoutMs: 30_000 }, undefined, 90 * 100 + 500],
  [
    'credit for the duration of its hand-off steps',
    0,
    { steps: [{ do: 'handoff', ttlSeconds: 60 }] },
    undefined,
    750 * 100 + 500,
  ],
  [
    'credit for the default time limit and 50 megabytes if the call sets no time limit',
    0,
    {},
    undefined,
    90 * 100 + 500,
  ],
  ['its price in addition to the estimated cost of its session', 40, {}, undefined, 90 * 100 + 540],
  ['maxCost if maxCost is lower than the estimate', 40, {}, 700, 700],
  ['the estimate if maxCost is higher', 0, {}, 1_000_000, 9500],
  ['nothing if the call runs in an existing session and has no price', 0, { sessionId: 's' }, undefined, 0],
  ['only its price if the call runs in an existing session', 40, { sessionId: 's' }, 50, 40],
  ['no more than the maximum amount of the ledger', Number.MAX_SAFE_INTEGER, {}, undefined, Number.MAX_SAFE_INTEGER],
] as const)
  test(`a call holds ${what}`, () => assert.equal(reservationOf(RATES, price, input, maxCost), amount));

test('a call holds no credit if all rates are 0, regardless of its price and maxCost', () =>
  assert.equal(reservationOf(NONE, 40, {}, 0), 0));

for (const [what, price, input, maxCost] of [
  ['less than one second of browser time', 0, {}, 99],
  ['less than one second of browser time in addition to the price', 40, {}, 139],
  ['less than the price of a call in an existing session', 40, { sessionId: 's' }, 39],
] as const)
  test(`a call is refused if its maxCost covers ${what}`, () =>
    assert.throws(
      () => reservationOf(RATES, price, input, maxCost),
      error => isFault(error, 'invalid_request'),
    ));

for (const [what, ended, captured] of [
  ['a call that succeeded captures its price and its metered cost', { state: 'succeeded' }, METERED_COST + 50],
  [
    'a call that failed after its start captures its metered cost, but not its price',
    { state: 'failed', phase: 'during' },
    METERED_COST,
  ],
  ['a call that failed before its start captures nothing', { state: 'failed', phase: 'before' }, 0],
  ['a cancelled call captures nothing', { state: 'cancelled' }, 0],
  ['a call with an unknown outcome neither captures nor gives back credit', { state: 'ambiguous' }, undefined],
  ['a call captures at most the credit that it held', { state: 'succeeded', reserved: 300 }, 300],
] as const)
  test(what, () =>
    assert.equal(captureAmountOf(RATES, { metered: meteredUse, reserved: 10_000, price: 50, ...ended }), captured),
  );
