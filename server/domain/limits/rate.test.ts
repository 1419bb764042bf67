import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { Rate } from './rate.ts';

test('limits the requests of each application in any 60 seconds', () => {
  let nowMs = 0;
  const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs, sleep: async () => {} };
  const rate = new Rate('This', 2, clock);
  const [one, two] = ['one', 'two'] as ApplicationId[];
  assert.ok(one && two);
  rate.take(one);
  nowMs = 40_000;
  rate.take(one);
  assert.throws(
    () => rate.take(one),
    error => isFault(error, 'rate_limited') && error.details?.retryAfterSeconds === 20,
  );
  rate.take(two);
  nowMs = 60_000;
  rate.take(one);
  assert.throws(() => rate.take(one));
});
