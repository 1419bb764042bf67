import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantile } from './quantile.ts';

const BOUNDS = [10, 20, 40];

for (const [counts, share, value] of [
  [[0, 0, 0, 0], 0.5, undefined],
  [[10, 0, 0, 0], 0.5, 5],
  [[10, 10, 0, 0], 0.5, 10],
  [[10, 10, 0, 0], 0.75, 15],
  [[1, 0, 1, 0], 1, 40],
  [[1, 0, 0, 1], 0.95, 40],
] as const)
  test(`the ${share} quantile of the bucket counts ${counts.join(', ')} is ${value}`, () =>
    assert.equal(quantile(BOUNDS, counts, share), value));
