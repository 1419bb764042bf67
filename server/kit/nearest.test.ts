import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestWord } from './nearest.ts';

const NAMES = ['status', 'q', 'limit', 'before'];

for (const [word, meant] of [
  ['stauts', 'status'],
  ['Status', 'status'],
  ['limits', 'limit'],
  ['befor', 'before'],
  ['query', 'q'],
] as const)
  test(`finds ${meant} as the nearest word to ${word}`, () => assert.equal(nearestWord(word, NAMES), meant));

test('finds no nearest word in an empty list', () => assert.equal(nearestWord('x', []), undefined));
