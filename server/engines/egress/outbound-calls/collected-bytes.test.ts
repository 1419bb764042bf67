// Tests that parts are collected in order into one buffer of limited size.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CollectedBytes } from './collected-bytes.ts';

test('stores parts in order up to the limit, and drops a part that would exceed the limit', () => {
  const collectedBytes = new CollectedBytes(10_000);
  for (let at = 0; at < 9_999; at += 1) assert.ok(collectedBytes.add(Uint8Array.of(at % 251)));
  assert.equal(collectedBytes.add(Uint8Array.of(1, 2)), false);
  assert.ok(collectedBytes.add(Uint8Array.of(7)));
  assert.equal(collectedBytes.add(Uint8Array.of(1)), false);
  assert.deepEqual([...collectedBytes.bytes], [...Array.from({ length: 9_999 }, (_, at) => at % 251), 7]);
});

test('returns no bytes if no part was added', () => {
  assert.equal(new CollectedBytes(0).bytes.length, 0);
});
