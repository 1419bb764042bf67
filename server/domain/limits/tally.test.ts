import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { isFault } from '../../kit/fault.ts';
import { Tally } from './tally.ts';

const createTally = (clock: ManualClock): Tally =>
  new Tally({ what: 'wrong codes', max: 2, withinMs: 60_000, scope: 'address' }, clock);

test('refuses attempts above the maximum until the oldest attempt is outside the period', async () => {
  const clock = new ManualClock();
  const wrongCodeTally = createTally(clock);
  wrongCodeTally.take('a');
  await clock.advance(20_000);
  wrongCodeTally.take('a');
  assert.throws(
    () => wrongCodeTally.take('a'),
    error => isFault(error, 'rate_limited') && error.details?.retryAfterSeconds === 40,
  );
  wrongCodeTally.take('b');
  await clock.advance(40_000);
  wrongCodeTally.take('a');
  assert.throws(() => wrongCodeTally.take('a'));
});

test('a tally does not count an attempt that was taken back', () => {
  const wrongCodeTally = createTally(new ManualClock());
  for (let attempt = 0; attempt < 10; attempt += 1) wrongCodeTally.take('a')();
  const both = [wrongCodeTally.take('a'), wrongCodeTally.take('a')];
  assert.throws(() => wrongCodeTally.take('a'));
  both[0]?.();
  wrongCodeTally.take('a');
  assert.throws(() => wrongCodeTally.take('a'));
});
