import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { isFault } from '../../kit/fault.ts';
import { Tally } from './tally.ts';

const tally = (clock: ManualClock): Tally =>
  new Tally({ what: 'wrong codes', max: 2, withinMs: 60_000, scope: 'address' }, clock);

test('refuses attempts above the maximum until the oldest attempt is outside the period', async () => {
  const clock = new ManualClock();
  const wrong = tally(clock);
  wrong.take('a');
  await clock.advance(20_000);
  wrong.take('a');
  assert.throws(
    () => wrong.take('a'),
    error => isFault(error, 'rate_limited') && error.details?.retryAfterSeconds === 40,
  );
  wrong.take('b');
  await clock.advance(40_000);
  wrong.take('a');
  assert.throws(() => wrong.take('a'));
});

test('a tally does not count an attempt that was taken back', () => {
  const wrong = tally(new ManualClock());
  for (let attempt = 0; attempt < 10; attempt += 1) wrong.take('a')();
  const both = [wrong.take('a'), wrong.take('a')];
  assert.throws(() => wrong.take('a'));
  both[0]?.();
  wrong.take('a');
  assert.throws(() => wrong.take('a'));
});
