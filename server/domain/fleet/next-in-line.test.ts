import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationId } from '../../kit/ids.ts';
import { nextInLine, type Standing } from './next-in-line.ts';

const [A, B] = ['a', 'b'] as [ApplicationId, ApplicationId];
const row = (place: number, applicationId = A, change: Partial<Standing> = {}): Standing => ({
  ...{ turn: 0, place, applicationId, region: null, why: 'host' },
  ...change,
});
const next = (rows: readonly Standing[], free: Readonly<Record<string, number>>): number[] => [
  ...nextInLine(rows, new Map(Object.entries(free))),
];

test('tries as many creates as there are free slots, in order', () => {
  assert.deepEqual(next([row(1), row(2, B), row(3)], { local: 2 }), [1, 2]);
  assert.deepEqual(next([row(1)], { local: 0 }), []);
});

test('a create takes a slot only in its region, and does not block other creates if none is free', () => {
  const far = row(1, A, { region: 'far' });
  assert.deepEqual(next([far, row(2, B)], { local: 1 }), [2]);
  assert.deepEqual(next([far, row(2, B)], { local: 1, far: 1 }), [1, 2]);
  assert.deepEqual(next([row(1), row(2, B)], { local: 1, far: 1 }), [1, 2]);
});

test('selects the first create of an application at its own limit without using a slot, and none of its later creates', () => {
  const limited = row(1, A, { why: 'concurrent' });
  assert.deepEqual(next([limited, row(2, A, { why: 'concurrent' }), row(3, A), row(4, B)], { local: 1 }), [1, 4]);
});
