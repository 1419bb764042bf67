import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeUsage, parseProcessorTime } from './processor-time.ts';

const SELF_STAT = '77 (a (b) c) S 1 77 77 0 -1 4194560 100 200 0 0 150 50 1000 300 20 0 11 0 5 0 0';
const MACHINE_STAT = 'cpu  100 20 30 4000 50 0 5 7 0 0\ncpu0 50 10 15 2000 25 0 2 3 0 0\nintr 5\n';

test('reads the processor time of a process with its children, and the idle and total time of the machine', () => {
  assert.deepEqual(parseProcessorTime(SELF_STAT, MACHINE_STAT), { used: 15, idle: 40.5, whole: 42.12 });
});

test('reports the processor time used between two moments', () => {
  const timeBefore = { used: 1, idle: 10, whole: 100 };
  assert.equal(
    describeUsage(timeBefore, { used: 61.4, idle: 20, whole: 200 }),
    '60 s of processor time; the machine was idle for 10% of its time',
  );
});
