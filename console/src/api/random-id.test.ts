import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomId } from './random-id.ts';

test('randomId returns a different version 4 UUID on each call', () => {
  const ids = Array.from({ length: 100 }, randomId);
  for (const id of ids) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  assert.equal(new Set(ids).size, ids.length);
});
