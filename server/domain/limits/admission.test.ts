import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BROWSER_LIMITS_DEFAULT } from '../../../contract/limits.ts';
import { plus } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { decideAdmission } from './admission.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const SECOND = 1000;
const LIMITS = {
  ...BROWSER_LIMITS_DEFAULT,
  maxConcurrent: 3,
  maxCreatesPerMinute: 5,
  defaultTimeout: 60,
  maxTimeout: 90,
};
const use = (living: number, created: number, oldest = plus(NOW, -20 * SECOND)) => ({
  configured: {},
  egressBytes: 0,
  living,
  created,
  ...(created > 0 ? { oldest } : {}),
});

describe('decideAdmission', () => {
  test('admits with the default timeout and the quota that is left', () => {
    assert.deepEqual(decideAdmission(LIMITS, use(0, 0), { createdAt: NOW }), {
      admitted: { expiresAt: plus(NOW, 60 * SECOND), quota: { limit: 3, remaining: 2, resetSeconds: 5 } },
    });
  });

  test('reports the quota of creates per minute where that is smaller', () => {
    const admission = decideAdmission(LIMITS, use(0, 4), { createdAt: NOW, timeout: 90 });
    assert.deepEqual(admission, {
      admitted: { expiresAt: plus(NOW, 90 * SECOND), quota: { limit: 5, remaining: 0, resetSeconds: 40 } },
    });
  });

  test('refuses at maxConcurrent, before maxCreatesPerMinute', () => {
    const refused = { why: 'concurrent', limit: 3, used: 3, retryAfterSeconds: 5 };
    assert.deepEqual(decideAdmission(LIMITS, use(3, 5), { createdAt: NOW }), { refused });
  });

  test('refuses at maxCreatesPerMinute until the oldest create is a minute old', () => {
    const refused = { why: 'minute', limit: 5, used: 5, retryAfterSeconds: 40 };
    assert.deepEqual(decideAdmission(LIMITS, use(0, 5), { createdAt: NOW }), { refused });
  });

  test('refuses before anything else when the bytes of the day are spent, until midnight UTC', () => {
    const spent = { ...use(3, 5), egressBytes: 1_000 };
    const createdAt = new Date('2026-01-01T23:59:30.500Z');
    const refused = { why: 'egress', limit: 1_000, used: 1_000, retryAfterSeconds: 30 };
    assert.deepEqual(decideAdmission({ ...LIMITS, egressBytesPerDay: 1_000 }, spent, { createdAt }), { refused });
    const left = decideAdmission({ ...LIMITS, egressBytesPerDay: 1_001 }, { ...spent, ...use(0, 0) }, { createdAt });
    assert.ok('admitted' in left);
  });

  test('throws invalid_request for a timeout above maxTimeout, even where nothing is free', () => {
    assert.throws(
      () => decideAdmission(LIMITS, use(3, 5), { createdAt: NOW, timeout: 91 }),
      error => isFault(error, 'invalid_request'),
    );
  });
});
