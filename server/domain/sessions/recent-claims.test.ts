import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentClaims } from './recent-claims.ts';

test('reports continuous demand after five claims, until the first claim is ten seconds old', () => {
  let nowMs = 0;
  const claims = new RecentClaims({ monotonicMs: () => nowMs });
  for (let claim = 1; claim <= 4; claim++) {
    claims.add();
    nowMs += 1_000;
  }
  assert.equal(claims.areContinuous, false, 'four claims are too few');
  claims.add();
  assert.equal(claims.areContinuous, true);
  nowMs = 9_999;
  assert.equal(claims.areContinuous, true);
  nowMs = 10_000;
  assert.equal(claims.areContinuous, false);
});
