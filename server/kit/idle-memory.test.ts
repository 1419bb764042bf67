import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdleMemory } from './idle-memory.ts';

const MIB = 1024 * 1024;

function openMemory() {
  const state = { sessions: 0, loopShare: 0.006, heapMib: 50, collections: 0 };
  const memory = new IdleMemory({
    hasSessions: () => state.sessions > 0,
    loopShare: () => state.loopShare,
    heapBytes: () => state.heapMib * MIB,
    collect: () => {
      state.collections += 1;
      state.heapMib = 36;
    },
  });
  return { memory, state };
}

test('collects garbage only once after the start', () => {
  const { memory, state } = openMemory();
  assert.deepEqual(memory.release(), { releasedMib: 14 });
  assert.deepEqual(memory.release(), { releasedMib: 0 });
  assert.equal(state.collections, 1);
});

test('collects garbage again after the heap has grown by 8 MiB', () => {
  const { memory, state } = openMemory();
  memory.release();
  state.heapMib = 43;
  memory.release();
  assert.equal(state.collections, 1);
  state.heapMib = 44;
  assert.deepEqual(memory.release(), { releasedMib: 8 });
  assert.equal(state.collections, 2);
});

test('does not collect garbage while sessions run, because a collection blocks the event loop', () => {
  const { memory, state } = openMemory();
  state.sessions = 1;
  assert.deepEqual(memory.release(), { releasedMib: 0 });
  assert.equal(state.collections, 0);
});

test('does not collect garbage if the event loop was busy since the previous call', () => {
  const { memory, state } = openMemory();
  state.loopShare = 0.03;
  assert.deepEqual(memory.release(), { releasedMib: 0 });
  assert.equal(state.collections, 0);
  state.loopShare = 0.01;
  memory.release();
  assert.equal(state.collections, 1);
});

test('does nothing in a process that was started without --expose-gc', () => {
  assert.equal(globalThis.gc, undefined);
  const memory = new IdleMemory({ hasSessions: () => false, loopShare: () => 0, heapBytes: () => 50 * MIB });
  assert.deepEqual(memory.release(), { releasedMib: 0 });
});
