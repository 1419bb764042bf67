import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BROWSER_LIMITS_DEFAULT } from '../../../contract/limits.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { quotaOf, refusalOf, termsOf } from './admission.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const SECOND_MS = 1000;
const LIMITS = {
  ...BROWSER_LIMITS_DEFAULT,
  maxConcurrent: 3,
  maxCreatesPerMinute: 5,
  defaultTimeout: 60,
  maxTimeout: 90,
};
const use = (living: number, created: number, oldest = addMs(NOW, -20 * SECOND_MS)) => ({
  configured: {},
  egressBytes: 0,
  living,
  created,
  ...(created > 0 ? { oldest } : {}),
});

describe('termsOf', () => {
  test('termsOf returns the limits and an expiry from the default timeout or the requested timeout', () => {
    const below = { living: 3, created: 5, egressBytes: BROWSER_LIMITS_DEFAULT.egressBytesPerDay };
    assert.deepEqual(termsOf(LIMITS, { createdAt: NOW }), { expiresAt: addMs(NOW, 60 * SECOND_MS), below });
    assert.deepEqual(termsOf(LIMITS, { createdAt: NOW, timeout: 90 }), {
      expiresAt: addMs(NOW, 90 * SECOND_MS),
      below,
    });
  });

  test('termsOf throws invalid_request for a timeout above maxTimeout', () => {
    assert.throws(
      () => termsOf(LIMITS, { createdAt: NOW, timeout: 91 }),
      error => isFault(error, 'invalid_request'),
    );
  });
});

describe('quotaOf', () => {
  test('quotaOf returns how many more sessions may run after this create', () => {
    assert.deepEqual(quotaOf(LIMITS, use(0, 0), NOW), { limit: 3, remaining: 2, resetSeconds: 5 });
  });

  test('quotaOf returns the remaining creates per minute if they are fewer than the sessions that may still run', () => {
    assert.deepEqual(quotaOf(LIMITS, use(0, 4), NOW), { limit: 5, remaining: 0, resetSeconds: 40 });
  });
});

describe('refusalOf', () => {
  test('reports maxConcurrent even if maxCreatesPerMinute is also reached', () => {
    const refusal = { why: 'concurrent', limit: 3, used: 3, retryAfterSeconds: 5 };
    assert.deepEqual(refusalOf(LIMITS, use(3, 5), NOW), refusal);
  });

  test('if only maxCreatesPerMinute is reached, reports it, and retryAfterSeconds is the time until the oldest create is one minute old', () => {
    const refusal = { why: 'minute', limit: 5, used: 5, retryAfterSeconds: 40 };
    assert.deepEqual(refusalOf(LIMITS, use(0, 5), NOW), refusal);
  });

  test('reports the daily byte limit before any other limit, and retryAfterSeconds is the time until midnight UTC', () => {
    const useWithEgress = { ...use(3, 5), egressBytes: 1_000 };
    const createdAt = new Date('2026-01-01T23:59:30.500Z');
    const refusal = { why: 'egress', limit: 1_000, used: 1_000, retryAfterSeconds: 30 };
    assert.deepEqual(refusalOf({ ...LIMITS, egressBytesPerDay: 1_000 }, useWithEgress, createdAt), refusal);
    assert.equal(refusalOf({ ...LIMITS, egressBytesPerDay: 1_001 }, useWithEgress, createdAt).why, 'concurrent');
  });
});
