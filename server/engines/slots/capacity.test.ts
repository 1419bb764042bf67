// How many sessions a machine can hold and start with each engine.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adviceForMemory, capacityOf, describeCapacity } from './capacity.ts';

const GIB = 1024 ** 3;

test('a machine can hold and start more sessions with headless-shell than with Chromium', () => {
  const machine = { memoryBytes: 4 * GIB, processors: 2 };
  assert.deepEqual(capacityOf('chromium', machine), { idleSessions: 30, startsPerMinute: 96 });
  assert.deepEqual(capacityOf('headless-shell', machine), { idleSessions: 50, startsPerMinute: 151 });
});

test('the advice for a machine with too little memory states how much memory an idle session of the selected engine takes', () => {
  assert.match(adviceForMemory('chromium'), /^An idle session with chromium takes about 101 MiB,/);
  assert.match(adviceForMemory('headless-shell'), /^An idle session with headless-shell takes about 61 MiB,/);
});

test('a machine with too little memory has an estimated capacity of 0 idle sessions', () =>
  assert.match(describeCapacity('chromium', { memoryBytes: GIB / 2, processors: 1 }), /about 0 idle sessions/));
