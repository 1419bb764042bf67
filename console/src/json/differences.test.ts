import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences } from './differences.ts';

test('differences lists the differences between two values and ignores the order of properties', () => {
  assert.deepEqual(differences({ a: 1, b: { c: [1, { d: 2 }] } }, { b: { c: [1, { d: 2 }] }, a: 1 }), []);
  assert.deepEqual(differences({ a: 1, b: [1, 2], e: {} }, { a: 2, b: [1], f: null, e: {} }), [
    { path: 'a', before: '1', after: '2' },
    { path: 'b.1', before: '2' },
    { path: 'f', after: 'null' },
  ]);
  assert.deepEqual(differences({ a: [] }, { a: {} }), [{ path: 'a', before: '[]', after: '{}' }]);
});
