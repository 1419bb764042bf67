import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../tests/harness/test-clock.ts';
import { addMs, type Clock, callAt, msToSharedTick } from './clock.ts';

const MINUTE_MS = 60_000;
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

test('callAt calls the function at the given time, not earlier', async () => {
  const clock = new TestClock();
  let callCount = 0;
  const call = callAt(clock, addMs(clock.now(), MINUTE_MS), () => callCount++);
  clock.advance(MINUTE_MS / 2);
  await turn();
  assert.equal(callCount, 0);
  clock.advance(MINUTE_MS);
  await turn();
  assert.equal(callCount, 1);
  call.close();
});

test('callAt does not call the function after the call is closed', async () => {
  const clock = new TestClock();
  let callCount = 0;
  callAt(clock, addMs(clock.now(), MINUTE_MS), () => callCount++).close();
  clock.advance(2 * MINUTE_MS);
  await turn();
  assert.equal(callCount, 0);
});

for (const [nowMs, waitMs] of [
  [0, 200],
  [1, 199],
  [100, 100],
  [101, 299],
  [199, 201],
  [1_000_050, 150],
] as const)
  test(`at ${nowMs} ms, a loop with an interval of 200 ms waits ${waitMs} ms for the next shared tick`, () => {
    const clock: Clock = { now: () => new Date(), monotonicMs: () => nowMs, sleep: async () => {} };
    assert.equal(msToSharedTick(clock, 200), waitMs);
  });
