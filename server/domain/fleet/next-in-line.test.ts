import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationId } from '../../kit/ids.ts';
import { nextInLine, type QueuedCreate } from './next-in-line.ts';

const [A, B] = ['a', 'b'] as [ApplicationId, ApplicationId];
const row = (place: number, applicationId = A, change: Partial<QueuedCreate> = {}): QueuedCreate => ({
  ...{ turn: 0, place, applicationId, region: null, why: 'host' },
  ...change,
});
const nextPlacesIn = (rows: readonly QueuedCreate[], free: Readonly<Record<string, number>>): number[] => [
  ...nextInLine(rows, new Map(Object.entries(free))),
];

test('selects as many creates as there are free slots, in order', () => {
  assert.deepEqual(nextPlacesIn([row(1), row(2, B), row(3)], { local: 2 }), [1, 2]);
  assert.deepEqual(nextPlacesIn([row(1)], { local: 0 }), []);
});

test('gives a create request a slot only in its own region, and does not block other requests if that region has no free slot', () => {
  const farRow = row(1, A, { region: 'far' });
  assert.deepEqual(nextPlacesIn([farRow, row(2, B)], { local: 1 }), [2]);
  assert.deepEqual(nextPlacesIn([farRow, row(2, B)], { local: 1, far: 1 }), [1, 2]);
  assert.deepEqual(nextPlacesIn([row(1), row(2, B)], { local: 1, far: 1 }), [1, 2]);
});

test('selects the first waiting create of an application at its limit without using a free slot, and skips the later creates of that application', () => {
  const limitedRow = row(1, A, { why: 'concurrent' });
  assert.deepEqual(
    nextPlacesIn([limitedRow, row(2, A, { why: 'concurrent' }), row(3, A), row(4, B)], { local: 1 }),
    [1, 4],
  );
});
