import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../kit/json.ts';
import { Holds } from './holds.ts';
import type { Channel } from './mux.ts';

const HELD: JsonObject = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
const client = { name: 'client' };

const channel = (id: string, targetId?: string): Channel => ({
  id,
  owner: { handleMessage() {}, fail() {}, batchEnd() {} },
  parent: undefined,
  targetId,
  pendingCommands: new Map(),
});

function trackResume(holds: Holds, ours: Channel, type = 'page', scope?: string): () => boolean {
  let isResumed = false;
  holds.whenNotHeld(ours, type, scope, () => {
    isResumed = true;
  });
  return () => isResumed;
}

test('resumes a target immediately if no client holds it', () => {
  const holds = new Holds();
  holds.onAutoAttach(client, channel('root'), { ...HELD, waitForDebuggerOnStart: false });
  holds.onAutoAttach(client, channel('other', 'another page'), HELD);
  assert.equal(trackResume(holds, channel('ours', 'popup'))(), true);
});

test('resumes a held target when the client resumes it, regardless of the order of attachment', () => {
  const holds = new Holds();
  holds.onAutoAttach(client, channel('root'), HELD);
  const first = channel('theirs', 'popup');
  const isResumed = trackResume(holds, channel('ours', 'popup'));
  holds.onAttached(client, first, 'page', true);
  assert.equal(isResumed(), false);
  holds.onResumed(first);
  assert.equal(isResumed(), true);
  const second = channel('theirs 2', 'popup 2');
  holds.onAttached(client, second, 'page', true);
  holds.onResumed(second);
  assert.equal(trackResume(holds, channel('ours 2', 'popup 2'))(), true);
});

test('resumes a held target when the channels of the client are detached', () => {
  const holds = new Holds();
  const root = channel('root');
  const clientChannel = channel('theirs', 'popup');
  holds.onAutoAttach(client, root, HELD);
  holds.onAttached(client, clientChannel, 'page', true);
  const isResumed = trackResume(holds, channel('ours', 'popup'));
  for (const one of [root, clientChannel]) {
    assert.equal(isResumed(), false);
    holds.onDetached(one);
  }
  assert.equal(isResumed(), true);
});

test('ignores clients whose filter excludes the target type, but waits for clients that attach to tabs', () => {
  const holds = new Holds();
  const root = channel('root');
  holds.onAutoAttach(client, root, { ...HELD, filter: [{ type: 'page', exclude: true }, {}] });
  assert.equal(trackResume(holds, channel('ours', 'popup'))(), false, 'the filter includes tabs');
  holds.onAutoAttach(client, root, { ...HELD, filter: [{ type: 'worker' }, { exclude: true }] });
  assert.equal(trackResume(holds, channel('ours 2', 'popup 2'))(), true);
  holds.forget('ours');
});

test('holds workers only for clients that are attached to their page', () => {
  const holds = new Holds();
  holds.onAutoAttach(client, channel('theirs', 'page'), HELD);
  assert.equal(trackResume(holds, channel('ours', 'worker'), 'worker', 'another page')(), true);
  assert.equal(trackResume(holds, channel('ours 2', 'worker 2'), 'worker', 'page')(), false);
  holds.forget('ours 2');
});
