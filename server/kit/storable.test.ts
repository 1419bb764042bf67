import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storableCopy } from './storable.ts';

test('replaces NUL and unpaired surrogates at every depth, and keeps bytes and other values', () => {
  const bytes = new Uint8Array([0, 1]);
  const copy = storableCopy({ title: 'a\0b', 'k\0': ['\ud800x', { deep: '\0' }], bytes, count: 1, none: null });
  assert.deepEqual(copy, {
    title: 'a\uFFFDb',
    'k\uFFFD': ['\uFFFDx', { deep: '\uFFFD' }],
    bytes,
    count: 1,
    none: null,
  });
  assert.equal(copy.bytes, bytes);
});
