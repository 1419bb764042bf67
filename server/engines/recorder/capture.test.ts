import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { Capture } from './capture.ts';
import type { JsonObject, TargetChannel } from './channel.ts';

class Tab implements TargetChannel {
  readonly id = 'tab';
  readonly kind = 'page';
  readonly parent = undefined;
  readonly isGone = false;
  readonly said: string[] = [];
  refusals: number;
  #tell: Parameters<TargetChannel['on']>[0] = () => {};

  constructor(refusals = 0) {
    this.refusals = refusals;
  }

  async send(method: string): Promise<JsonObject> {
    this.said.push(method);
    if (this.refusals-- > 0) throw new Error('Internal error');
    return {};
  }

  say(method: string): void {
    this.said.push(method);
  }

  on(listener: Parameters<TargetChannel['on']>[0]) {
    this.#tell = listener;
    return { close: () => {} };
  }

  whenGone(): void {}

  async happens(method: string, params: JsonObject = {}): Promise<void> {
    this.#tell(method, params, Buffer.from('picture'));
    await setImmediate();
  }
}

const START = 'Page.startScreencast';
const STOP = 'Page.stopScreencast';
const FRAME = { data: '', sessionId: 1, metadata: { timestamp: 1, monotonicTimestamp: 1 } };

function captured(tab: Tab) {
  const clock = new TestClock();
  let frames = 0;
  const taken = async (): Promise<boolean> => {
    frames++;
    return true;
  };
  const capture = new Capture({ channel: tab, clock, isWatched: () => false, taken, visible: () => {} });
  const passes = async (ms: number): Promise<void> => {
    await setImmediate();
    clock.advance(ms);
    await setImmediate();
  };
  return { capture, passes, frames: () => frames };
}

test('a screencast that could not be started is tried again, until it can be or nobody wants it', async () => {
  const tab = new Tab(2);
  const { capture, passes } = captured(tab);
  await passes(1_000);
  await passes(1_000);
  await passes(1_000);
  assert.deepEqual(tab.said, [START, START, START]);
  capture.close();
  const other = new Tab(9);
  const { capture: closed, passes: later } = captured(other);
  closed.close();
  await later(1_000);
  assert.deepEqual(other.said, [START, STOP]);
});

test('a page that was loaded and shows nothing is looked at; one that has shown itself is left alone', async () => {
  const tab = new Tab();
  const { capture, passes, frames } = captured(tab);
  await tab.happens('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.happens('Page.loadEventFired');
  await passes(1_000);
  assert.deepEqual(tab.said, [START, STOP, START]);
  await tab.happens('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.happens('Page.frameNavigated', { frame: { id: 'inner', parentId: 'main' } });
  await tab.happens('Page.screencastFrame', FRAME);
  const said = tab.said.length;
  await tab.happens('Page.loadEventFired');
  assert.deepEqual([frames(), tab.said.slice(said).filter(method => method === STOP)], [1, []]);
  capture.close();
});
