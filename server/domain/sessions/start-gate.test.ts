import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { StartGate } from './start-gate.ts';

/** Waits for a few turns of the event loop, so that pending callbacks run. */
async function turns(): Promise<void> {
  for (let n = 0; n < 3; n++) await turn();
}

const NEVER = new AbortController().signal;

/** Starts that end when the test calls `end`, and the order in which they began. */
function scene(places = 2) {
  const clock = new TestClock();
  const gate = new StartGate(clock, places);
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    began.push(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(name, resolve);
    return promise;
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await turns();
  };
  return { clock, gate, began, work, end };
}

test('runs as many starts at once as there are places, and the other starts in order of arrival', async () => {
  const { gate, began, work, end } = scene();
  const all = ['a', 'b', 'c', 'd'].map(name => gate.inTurn(work(name), NEVER));
  await turns();
  assert.deepEqual(began, ['a', 'b']);
  await end('b');
  assert.deepEqual(began, ['a', 'b', 'c']);
  for (const name of ['a', 'c', 'd']) await end(name);
  await Promise.all(all);
});

test('a start with hold takes a place without waiting for a free place', async () => {
  const { gate, began, work, end } = scene(1);
  const all = [gate.hold(work('a')), gate.hold(work('b')), gate.inTurn(work('c'), NEVER)];
  await turns();
  assert.deepEqual(began, ['a', 'b']);
  await end('a');
  assert.deepEqual(began, ['a', 'b'], 'the only place is still taken');
  await end('b');
  assert.deepEqual(began, ['a', 'b', 'c']);
  await end('c');
  await Promise.all(all);
});

test('a start that hangs delays the next start for at most three seconds', async () => {
  const { clock, gate, began, work, end } = scene(1);
  const all = ['a', 'b'].map(name => gate.inTurn(work(name), NEVER));
  await turns();
  clock.advance(2_000);
  await turns();
  assert.deepEqual(began, ['a']);
  clock.advance(1_000);
  await turns();
  assert.deepEqual(began, ['a', 'b']);
  await end('a');
  await end('b');
  await Promise.all(all);
});

test('a waiting start whose signal aborts loses its turn', async () => {
  const { gate, began, work, end } = scene(1);
  const first = gate.inTurn(work('a'), NEVER);
  const abandonController = new AbortController();
  const left = gate.inTurn(work('b'), abandonController.signal);
  const last = gate.inTurn(work('c'), NEVER);
  abandonController.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  await end('a');
  assert.deepEqual(began, ['a', 'c']);
  await end('c');
  await Promise.all([first, last]);
});

test('a start that fails gives its place back', async () => {
  const { gate, began, work, end } = scene(1);
  await assert.rejects(
    gate.inTurn(() => Promise.reject(new Error('no')), NEVER),
    /no/,
  );
  const next = gate.inTurn(work('a'), NEVER);
  await turns();
  assert.deepEqual(began, ['a']);
  await end('a');
  await next;
});
