import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BROWSER_LIMITS_DEFAULT } from '../../../contract/limits.ts';
import { configuredLimits, effectiveLimits, readConfigured } from './browser-limits.ts';

test('what was not named has its default', () => {
  assert.deepEqual(configuredLimits({}), BROWSER_LIMITS_DEFAULT);
  assert.deepEqual(configuredLimits({ browsers: { maxWaiting: 0 } }), { ...BROWSER_LIMITS_DEFAULT, maxWaiting: 0 });
});

test('what holds is the smaller of the configured and the ceiling', () => {
  const configured = { ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 50, maxWaiting: 5 };
  const effective = effectiveLimits(configured, { maxConcurrent: 4, maxWaiting: 1000 });
  assert.deepEqual(effective, { ...configured, maxConcurrent: 4 });
  assert.deepEqual(effectiveLimits(configured, {}), configured);
});

test('the default time limit is never above the longest', () => {
  const configured = { ...BROWSER_LIMITS_DEFAULT, defaultTimeout: 3600, maxTimeout: 1800 };
  assert.equal(effectiveLimits(configured, {}).defaultTimeout, 1800);
  assert.equal(effectiveLimits(configured, { maxTimeout: 600 }).defaultTimeout, 600);
});

test('of a row only numbers under known names are taken', () => {
  assert.deepEqual(readConfigured({}), {});
  assert.deepEqual(readConfigured({ browsers: { maxConcurrent: 3, maxWaiting: 'many', other: 1 }, flows: {} }), {
    browsers: { maxConcurrent: 3 },
  });
});
