import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { StartGate } from './start-gate.ts';

/** Waits for a few turns of the event loop, so that pending callbacks run. */
async function waitForTurns(): Promise<void> {
  for (let n = 0; n < 3; n++) await turn();
}

const NOT_ABORTED = new AbortController().signal;

/** A gate whose starts end when the test calls `end`. Records the order in which the starts began. */
function scene(places = 2) {
  const clock = new TestClock();
  const gate = new StartGate(clock, places);
  const startedNames: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    startedNames.push(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(name, resolve);
    return promise;
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await waitForTurns();
  };
  return { clock, gate, began: startedNames, work, end };
}

test('runs as many starts at once as there are places, and then runs the waiting starts in order of arrival', async () => {
  const { gate, began: startedNames, work, end } = scene();
  const all = ['a', 'b', 'c', 'd'].map(name => gate.inTurn(work(name), NOT_ABORTED));
  await waitForTurns();
  assert.deepEqual(startedNames, ['a', 'b']);
  await end('b');
  assert.deepEqual(startedNames, ['a', 'b', 'c']);
  for (const name of ['a', 'c', 'd']) await end(name);
  await Promise.all(all);
});

test('hold runs a start immediately even if no place is free, and the start counts as using a place', async () => {
  const { gate, began: startedNames, work, end } = scene(1);
  const all = [gate.hold(work('a')), gate.hold(work('b')), gate.inTurn(work('c'), NOT_ABORTED)];
  await waitForTurns();
  assert.deepEqual(startedNames, ['a', 'b']);
  await end('a');
  assert.deepEqual(startedNames, ['a', 'b'], 'the only place is still taken');
  await end('b');
  assert.deepEqual(startedNames, ['a', 'b', 'c']);
  await end('c');
  await Promise.all(all);
});

test('a start that hangs delays the next start for at most three seconds', async () => {
  const { clock, gate, began: startedNames, work, end } = scene(1);
  const all = ['a', 'b'].map(name => gate.inTurn(work(name), NOT_ABORTED));
  await waitForTurns();
  clock.advance(2_000);
  await waitForTurns();
  assert.deepEqual(startedNames, ['a']);
  clock.advance(1_000);
  await waitForTurns();
  assert.deepEqual(startedNames, ['a', 'b']);
  await end('a');
  await end('b');
  await Promise.all(all);
});

test('a waiting start whose signal aborts loses its turn', async () => {
  const { gate, began: startedNames, work, end } = scene(1);
  const first = gate.inTurn(work('a'), NOT_ABORTED);
  const abandonController = new AbortController();
  const left = gate.inTurn(work('b'), abandonController.signal);
  const last = gate.inTurn(work('c'), NOT_ABORTED);
  abandonController.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  await end('a');
  assert.deepEqual(startedNames, ['a', 'c']);
  await end('c');
  await Promise.all([first, last]);
});

test('a start that fails gives its place back', async () => {
  const { gate, began: startedNames, work, end } = scene(1);
  await assert.rejects(
    gate.inTurn(() => Promise.reject(new Error('no')), NOT_ABORTED),
    /no/,
  );
  const next = gate.inTurn(work('a'), NOT_ABORTED);
  await waitForTurns();
  assert.deepEqual(startedNames, ['a']);
  await end('a');
  await next;
});
