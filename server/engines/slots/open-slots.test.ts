import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { assertEnoughUids } from './open-slots.ts';

test('refuses more slots than there are user ids, where each browser has its own', () => {
  assertEnoughUids(998, 'root');
  assertEnoughUids(1017, 'rootless');
  assert.throws(
    () => assertEnoughUids(999, 'root'),
    error => isFault(error, 'isolation_unavailable') && /BERTH_SLOTS and BERTH_WARM/.test(error.message),
  );
});
