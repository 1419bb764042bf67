import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest } from './nearest.ts';

const NAMES = ['status', 'q', 'limit', 'before'];

for (const [word, meant] of [
  ['stauts', 'status'],
  ['Status', 'status'],
  ['limits', 'limit'],
  ['befor', 'before'],
  ['query', 'q'],
] as const)
  test(`${word} is nearest to ${meant}`, () => assert.equal(nearest(word, NAMES), meant));

test('nothing is near where there is nothing', () => assert.equal(nearest('x', []), undefined));
