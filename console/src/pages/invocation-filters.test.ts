import assert from 'node:assert/strict';
import { test } from 'node:test';
import { invocationQueryOf, readInvocationFilters } from './invocation-filters.ts';

const KEY = '01a1fa50-5319-7450-a6b3-c787ada50631';

test('readInvocationFilters reads valid filters and ignores everything else', () => {
  const search = { state: 'failed', operation: 'browser.pdf', key: KEY, since: 'day' };
  assert.deepEqual(readInvocationFilters(search), search);
  const invalidSearch = { state: 'done', operation: 'Browser PDF', key: 'x', since: 'ever', more: '1' };
  assert.deepEqual(readInvocationFilters(invalidSearch), {});
  assert.deepEqual(readInvocationFilters({ operation: 'a'.repeat(65) }), {});
});

test('invocationQueryOf converts filters to query parameters of the API', () => {
  const query = invocationQueryOf(
    { state: 'failed', operation: 'browser.pdf', key: KEY, since: 'hour' },
    Date.parse('2026-11-24T12:00:30.000Z'),
  );
  assert.deepEqual(query, {
    status: 'failed',
    operationId: 'browser.pdf',
    keyId: KEY,
    after: '2026-11-24T11:00:00.000Z',
  });
  assert.deepEqual(invocationQueryOf({}, 0), {});
});
