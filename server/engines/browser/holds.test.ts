import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../kit/json.ts';
import { Holds } from './holds.ts';
import type { Channel } from './mux.ts';

const HELD: JsonObject = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
const client = { name: 'client' };

const channel = (id: string, targetId?: string): Channel => ({
  id,
  owner: { incoming() {}, fail() {}, rest() {} },
  parent: undefined,
  targetId,
  pending: new Map(),
});

function freeing(holds: Holds, ours: Channel, type = 'page', scope?: string): () => boolean {
  let free = false;
  holds.whenFree(ours, type, scope, () => {
    free = true;
  });
  return () => free;
}

test('a target that no client holds is free at once', () => {
  const holds = new Holds();
  holds.autoAttach(client, channel('root'), { ...HELD, waitForDebuggerOnStart: false });
  holds.autoAttach(client, channel('other', 'another page'), HELD);
  assert.equal(freeing(holds, channel('ours', 'popup'))(), true);
});

test('one that a client holds is free when the client lets it go, whoever was told first', () => {
  const holds = new Holds();
  holds.autoAttach(client, channel('root'), HELD);
  const first = channel('theirs', 'popup');
  const told = freeing(holds, channel('ours', 'popup'));
  holds.told(client, first, 'page', true);
  assert.equal(told(), false);
  holds.resumed(first);
  assert.equal(told(), true);
  const second = channel('theirs 2', 'popup 2');
  holds.told(client, second, 'page', true);
  holds.resumed(second);
  assert.equal(freeing(holds, channel('ours 2', 'popup 2'))(), true);
});

test('it is free when the client that held it is gone', () => {
  const holds = new Holds();
  const root = channel('root');
  const theirs = channel('theirs', 'popup');
  holds.autoAttach(client, root, HELD);
  holds.told(client, theirs, 'page', true);
  const free = freeing(holds, channel('ours', 'popup'));
  for (const one of [root, theirs]) {
    assert.equal(free(), false);
    holds.left(one);
  }
  assert.equal(free(), true);
});

test('a client that filters the kind out holds nothing of it; one that is told of tabs may', () => {
  const holds = new Holds();
  const root = channel('root');
  holds.autoAttach(client, root, { ...HELD, filter: [{ type: 'page', exclude: true }, {}] });
  assert.equal(freeing(holds, channel('ours', 'popup'))(), false, 'its tabs are taken');
  holds.autoAttach(client, root, { ...HELD, filter: [{ type: 'worker' }, { exclude: true }] });
  assert.equal(freeing(holds, channel('ours 2', 'popup 2'))(), true);
  holds.forget('ours');
});

test('workers are held from their page', () => {
  const holds = new Holds();
  holds.autoAttach(client, channel('theirs', 'page'), HELD);
  assert.equal(freeing(holds, channel('ours', 'worker'), 'worker', 'another page')(), true);
  assert.equal(freeing(holds, channel('ours 2', 'worker 2'), 'worker', 'page')(), false);
  holds.forget('ours 2');
});
