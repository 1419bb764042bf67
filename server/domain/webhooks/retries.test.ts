// Tests the schedule of retries.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAILURE_PERIOD_MAX_MS, pauseAfter, RETRY_PAUSES_MS } from './retries.ts';

const DAY_MS = 24 * 3_600_000;

test('failed deliveries are retried with increasing pauses for three days', () => {
  const totalMs = RETRY_PAUSES_MS.reduce((sum, pauseMs) => sum + pauseMs, 0);
  assert.ok(totalMs >= 3 * DAY_MS && totalMs < 4 * DAY_MS, `${totalMs}`);
  assert.deepEqual(
    [...RETRY_PAUSES_MS].sort((a, b) => a - b),
    RETRY_PAUSES_MS,
  );
  assert.equal(pauseAfter(1), 5000);
  assert.equal(pauseAfter(RETRY_PAUSES_MS.length), DAY_MS);
  assert.equal(pauseAfter(RETRY_PAUSES_MS.length + 1), undefined);
});

test('a webhook is disabled no later than the last retry of its first failed delivery', () => {
  assert.ok(FAILURE_PERIOD_MAX_MS <= RETRY_PAUSES_MS.reduce((sum, pauseMs) => sum + pauseMs, 0));
});
