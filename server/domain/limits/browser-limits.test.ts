import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BROWSER_LIMITS_DEFAULT } from '../../../contract/limits.ts';
import { configuredLimits, effectiveLimits, ineffectiveLimitIssues } from './browser-limits.ts';

test('uses the default for each limit that is not configured', () => {
  assert.deepEqual(configuredLimits({}), BROWSER_LIMITS_DEFAULT);
  assert.deepEqual(configuredLimits({ browsers: { maxWaiting: 0 } }), { ...BROWSER_LIMITS_DEFAULT, maxWaiting: 0 });
});

test('caps each configured limit at the ceiling', () => {
  const applicationLimits = { ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 50, maxWaiting: 5 };
  const cappedLimits = effectiveLimits(applicationLimits, { maxConcurrent: 4, maxWaiting: 1000 });
  assert.deepEqual(cappedLimits, { ...applicationLimits, maxConcurrent: 4 });
  assert.deepEqual(effectiveLimits(applicationLimits, {}), applicationLimits);
});

test('caps the default timeout at the maximum', () => {
  const applicationLimits = { ...BROWSER_LIMITS_DEFAULT, defaultTimeout: 3600, maxTimeout: 1800 };
  assert.equal(effectiveLimits(applicationLimits, {}).defaultTimeout, 1800);
  assert.equal(effectiveLimits(applicationLimits, { maxTimeout: 600 }).defaultTimeout, 600);
});

test('ignores configured limits with unknown names, and values that are not numbers', () => {
  const browsers = { maxConcurrent: 3, maxWaiting: 'many', other: 1 };
  assert.deepEqual(configuredLimits({ browsers, flows: {} }), { ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 3 });
  assert.deepEqual(configuredLimits({ browsers: null }), BROWSER_LIMITS_DEFAULT);
});

test('reports settings that have no effect: limits above the ceiling, and a default timeout above the maximum', () => {
  const limitsBefore = { ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 10 };
  const issuePathsOf = (asked: Parameters<typeof ineffectiveLimitIssues>[0]): string[] =>
    ineffectiveLimitIssues(asked, limitsBefore, { maxConcurrent: 4, maxWaiting: 1000 }).map(({ path }) => path);
  assert.deepEqual(issuePathsOf({}), []);
  assert.deepEqual(issuePathsOf({ maxConcurrent: 4, maxCreatesPerMinute: 1_000_000 }), []);
  assert.deepEqual(issuePathsOf({ maxConcurrent: 10 }), [], 'the limit was configured before');
  assert.deepEqual(issuePathsOf({ maxConcurrent: 9 }), ['browsers.maxConcurrent']);
  assert.deepEqual(issuePathsOf({ defaultTimeout: 700, maxTimeout: 600 }), ['browsers.defaultTimeout']);
});
