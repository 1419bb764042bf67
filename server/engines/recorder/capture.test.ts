import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { HandClock } from '../../../tests/harness/hand-clock.ts';
import type { JsonObject } from '../../kit/json.ts';
import { Capture, type CapturedFrame, type Taken } from './capture.ts';
import type { TargetChannel } from './channel.ts';

class Tab implements TargetChannel {
  readonly id = 'tab';
  readonly kind = 'page';
  readonly parent = undefined;
  readonly isGone = false;
  readonly said: string[] = [];
  /** With each start: so many frames at once. */
  readonly inFlight: unknown[] = [];
  refusals: number;
  #tell: Parameters<TargetChannel['on']>[0] = () => {};

  constructor(refusals = 0) {
    this.refusals = refusals;
  }

  async send(method: string, { maxFramesInFlight }: JsonObject): Promise<JsonObject> {
    this.said.push(method);
    this.inFlight.push(maxFramesInFlight);
    if (this.refusals-- > 0) throw new Error('Internal error');
    return {};
  }

  post(method: string): void {
    this.said.push(method);
  }

  on(listener: Parameters<TargetChannel['on']>[0]) {
    this.#tell = listener;
    return { close: () => {} };
  }

  whenGone(): void {}

  async happens(method: string, params: JsonObject = {}, picture = 'picture'): Promise<void> {
    this.#tell(method, params, Buffer.from(picture));
    await setImmediate();
  }

  async shows(picture: string, run = 1): Promise<void> {
    await this.happens('Page.screencastFrame', { ...FRAME, sessionId: run }, picture);
  }

  saidOf(method: string): number {
    return this.said.filter(one => one === method).length;
  }
}

const START = 'Page.startScreencast';
const STOP = 'Page.stopScreencast';
const ALLOW = 'Page.screencastFrameAck';
/** Longer than any pace. */
const WHILE_MS = 1_000;
const FRAME = { data: '', sessionId: 1, metadata: { timestamp: 1, monotonicTimestamp: 1 } };

interface Look {
  isWatched: boolean;
  /** Frames are done with when this is. */
  until: Promise<void>;
  taken?: Taken;
}

function captured(tab: Tab, look: Look = { isWatched: false, until: Promise.resolve() }) {
  // It stands still between the steps, however long these take.
  const clock = new HandClock();
  const seen: CapturedFrame[] = [];
  const taken = async (frame: CapturedFrame): Promise<Taken> => {
    await look.until;
    seen.push(frame);
    return look.taken ?? 'kept';
  };
  const capture = new Capture({ channel: tab, clock, isWatched: () => look.isWatched, taken, visible: () => {} });
  const passes = async (ms: number): Promise<void> => {
    await setImmediate();
    await clock.advance(ms);
  };
  return {
    capture,
    passes,
    look,
    frames: () => seen.length,
    seen: () => seen.map(({ jpeg, ahead }) => `${jpeg} ${ahead}`),
  };
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

test('while somebody looks three frames may be on their way, each in its order, and none is followed by a new start', async () => {
  const tab = new Tab();
  const { capture, passes, seen } = captured(tab, { isWatched: true, until: Promise.resolve() });
  for (const picture of ['one', 'two', 'three']) await tab.shows(picture);
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3']);
  assert.ok(tab.saidOf(ALLOW) >= 1, 'behind a rest the first is allowed to be followed at once');
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.inFlight, tab.saidOf(ALLOW), tab.saidOf(STOP)], [[3], 3, 0]);
  capture.close();
});

test('what changed while three frames were on their way is looked at by a new start, and no frame of before it counts', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, passes, seen } = captured(tab, { isWatched: true, until: free.promise });
  for (const picture of ['one', 'two', 'three']) await tab.shows(picture);
  await passes(WHILE_MS);
  assert.equal(tab.saidOf(ALLOW), 0, 'nothing follows before they are done with');
  free.resolve();
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.saidOf(START), tab.saidOf(STOP)], [2, 1]);
  await tab.shows('late');
  await tab.shows('four', 2);
  assert.deepEqual(seen().slice(3), ['four 1']);
  capture.close();
});

test('the pace changes when somebody comes to look, and when nobody does any more', async () => {
  const tab = new Tab();
  const { capture, look, passes, seen } = captured(tab);
  await tab.shows('one');
  look.isWatched = true;
  capture.watchedOrNot();
  capture.watchedOrNot(); // one more comes
  await tab.shows('two', 2);
  look.isWatched = false;
  capture.watchedOrNot();
  await tab.shows('three', 3);
  assert.deepEqual(tab.inFlight, [1, 3, 1]);
  assert.deepEqual(seen(), ['one 1', 'two 1', 'three 1']);
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.equal(tab.saidOf(START), 4, 'behind a frame that was alone on its way the page is looked at once more');
  capture.close();
});

test('a frame that comes while others are not done with says so, also behind a change of pace', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, look, passes, seen } = captured(tab, { isWatched: true, until: free.promise });
  await tab.shows('one');
  await tab.shows('two');
  look.isWatched = false;
  capture.watchedOrNot();
  await tab.shows('three', 2);
  free.resolve();
  await passes(WHILE_MS);
  await tab.shows('four', 2);
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3', 'four 1']);
  capture.close();
});

test('what went wrong before a change of pace is looked at again behind it', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, look, passes, seen } = captured(tab, { isWatched: true, until: free.promise, taken: 'wrong' });
  await tab.shows('one');
  look.isWatched = false;
  capture.watchedOrNot();
  free.resolve();
  await passes(WHILE_MS);
  assert.deepEqual(tab.said, [START, STOP, START, STOP, START]);
  look.taken = 'kept';
  await tab.shows('one', 3);
  assert.deepEqual(seen(), ['one 1', 'one 2'], 'of the start between the two nothing was seen');
  capture.close();
});

test('a page of which more is black than need be is looked at once more when it rests', async () => {
  const tab = new Tab();
  const { capture, look, passes, seen } = captured(tab, { isWatched: true, until: Promise.resolve(), taken: 'wide' });
  await tab.shows('one');
  await passes(WHILE_MS);
  assert.deepEqual(tab.said.slice(-2), [STOP, START]);
  look.taken = 'kept';
  await tab.shows('one', 2);
  await passes(WHILE_MS);
  assert.deepEqual([seen(), tab.saidOf(START)], [['one 1', 'one 1'], 2]);
  capture.close();
});
