import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { JsonObject } from '../../kit/json.ts';
import { Capture, type CapturedFrame, type FrameResult } from './capture.ts';
import type { TargetChannel } from './channel.ts';

class Tab implements TargetChannel {
  readonly id = 'tab';
  readonly kind = 'page';
  readonly url = 'https://page.test/';
  readonly parent = undefined;
  readonly isGone = false;
  readonly said: string[] = [];
  /** `maxFramesInFlight` of each start. */
  readonly inFlight: unknown[] = [];
  refusals: number;
  /** The wall-clock time, which is the same for the browser and the server. */
  nowMs = 0;
  #report: Parameters<TargetChannel['on']>[0] = () => {};

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
    this.#report = listener;
    return { close: () => {} };
  }

  whenGone(): void {}

  async happens(method: string, params: JsonObject = {}, image = 'picture'): Promise<void> {
    this.#report(method, params, Buffer.from(image));
    await setImmediate();
  }

  /** `lateMs`: the time since the frame was painted. */
  async shows(image: string, run = 1, lateMs = 0): Promise<void> {
    const paintedMs = this.nowMs - lateMs;
    const metadata = { timestamp: paintedMs / 1_000, monotonicTimestamp: (BROWSER_CLOCK_MS + paintedMs) / 1_000 };
    await this.happens('Page.screencastFrame', { data: '', sessionId: run, metadata }, image);
  }

  saidOf(method: string): number {
    return this.said.filter(one => one === method).length;
  }
}

const START = 'Page.startScreencast';
const STOP = 'Page.stopScreencast';
const ALLOW = 'Page.screencastFrameAck';
/** Longer than any frame period. */
const WHILE_MS = 1_000;
/** The browser's monotonic clock when the server's monotonic clock is at zero. */
const BROWSER_CLOCK_MS = 5_000;
/** Time between two painted changes. */
const PAINT_MS = 17;

interface Look {
  isWatched: boolean;
  /** Frames are not handled until this resolves. */
  until: Promise<void>;
  result?: FrameResult;
}

function captured(tab: Tab, look: Look = { isWatched: false, until: Promise.resolve() }, isUnpainted = false) {
  // The clock moves only when a test advances it.
  const clock = new ManualClock();
  const seen: CapturedFrame[] = [];
  const onFrame = async (frame: CapturedFrame): Promise<FrameResult> => {
    await look.until;
    seen.push(frame);
    return look.result ?? 'kept';
  };
  const capture = new Capture({
    channel: tab,
    clock,
    isUnpainted,
    isWatched: () => look.isWatched,
    onFrame,
    onVisibility: () => {},
  });
  const passes = async (ms: number): Promise<void> => {
    await setImmediate();
    tab.nowMs += ms;
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

test('retries a failed start of the screencast until a start succeeds or the capture is closed', async () => {
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

const unpainted = (look?: Look) => {
  const tab = new Tab();
  return { tab, ...captured(tab, look, true) };
};

const ASKED = ['Page.enable', 'Page.setLifecycleEventsEnabled'];

test('waits 750 milliseconds before it captures a page that has not painted yet', async () => {
  const { tab, capture, passes } = unpainted();
  await tab.happens('Page.frameNavigated', { frame: { id: 'main', url: 'https://page.test/' } });
  await tab.happens('Page.lifecycleEvent', { name: 'load' });
  await passes(749);
  assert.deepEqual(tab.said, ASKED);
  await passes(1);
  assert.deepEqual(tab.said, [...ASKED, START]);
  await tab.happens('Page.lifecycleEvent', { name: 'firstPaint' });
  assert.deepEqual(tab.said, [...ASKED, START]);
  capture.close();
  const { tab: other, capture: closed, passes: later } = unpainted();
  closed.close();
  await later(1_000);
  assert.deepEqual(other.said, ASKED);
});

test('captures a page immediately on its first paint, for a viewer, or when a frame is requested', async () => {
  const look: Look = { isWatched: false, until: Promise.resolve() };
  const causes: ReadonlyArray<(page: ReturnType<typeof unpainted>) => unknown> = [
    ({ tab }) => tab.happens('Page.lifecycleEvent', { name: 'firstPaint' }),
    ({ capture }) => capture.refresh(),
    ({ capture }) => {
      look.isWatched = true;
      capture.viewersChanged();
    },
  ];
  for (const cause of causes) {
    const page = unpainted(look);
    await cause(page);
    assert.deepEqual(page.tab.said, [...ASKED, START]);
    await page.passes(WHILE_MS);
    assert.deepEqual(page.tab.said, [...ASKED, START]);
    page.capture.close();
  }
});

test('restarts the screencast for a loaded page only if the page has not sent a frame', async () => {
  const tab = new Tab();
  const { capture, passes, frames } = captured(tab);
  await tab.happens('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.happens('Page.loadEventFired');
  await passes(1_000);
  assert.deepEqual(tab.said, [START, STOP, START]);
  await tab.happens('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.happens('Page.frameNavigated', { frame: { id: 'inner', parentId: 'main' } });
  await tab.shows('picture');
  const said = tab.said.length;
  await tab.happens('Page.loadEventFired');
  assert.deepEqual([frames(), tab.said.slice(said).filter(method => method === STOP)], [1, []]);
  capture.close();
});

test('allows three frames in flight while there are viewers, keeps their order and does not restart the screencast', async () => {
  const tab = new Tab();
  const { capture, passes, seen } = captured(tab, { isWatched: true, until: Promise.resolve() });
  for (const image of ['one', 'two', 'three']) {
    await passes(PAINT_MS);
    await tab.shows(image);
  }
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3']);
  assert.ok(tab.saidOf(ALLOW) >= 1, 'the first frame is acknowledged immediately');
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.inFlight, tab.saidOf(ALLOW), tab.saidOf(STOP)], [[3], 3, 0]);
  capture.close();
});

test('restarts the screencast for a change that occurred while three frames were in flight, and ignores frames of the earlier run', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, passes, seen } = captured(tab, { isWatched: true, until: free.promise });
  for (const image of ['one', 'two', 'three']) await tab.shows(image);
  await passes(WHILE_MS);
  assert.equal(tab.saidOf(ALLOW), 0, 'no frame is acknowledged before it has been handled');
  free.resolve();
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.saidOf(START), tab.saidOf(STOP)], [2, 1]);
  await tab.shows('late');
  await tab.shows('four', 2);
  assert.deepEqual(seen().slice(3), ['four 1']);
  capture.close();
});

test('acknowledges but does not show a frame that arrives after a newer frame', async () => {
  for (const isWatched of [true, false]) {
    const tab = new Tab();
    const { capture, passes, seen } = captured(tab, { isWatched, until: Promise.resolve() });
    await passes(WHILE_MS);
    await tab.shows('newer', 1, 10);
    await tab.shows('older', 1, 30);
    await passes(WHILE_MS);
    assert.deepEqual([seen(), tab.saidOf(ALLOW)], [['newer 1'], 2]);
    await tab.shows('newest', 1 + tab.saidOf(STOP));
    assert.equal(seen().length, 2);
    capture.close();
  }
});

test('restarts the screencast for a change that was painted before a late acknowledgement, even if all frames were late', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, passes } = captured(tab, { isWatched: false, until: free.promise });
  await passes(WHILE_MS);
  await tab.shows('one', 1, 300);
  await passes(PAINT_MS);
  free.resolve();
  await passes(1); // The first frame is acknowledged 200 ms after the second frame was painted.
  await passes(100);
  await tab.shows('two', 1, 300);
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.saidOf(ALLOW), tab.saidOf(START), tab.saidOf(STOP)], [2, 2, 1]);
  capture.close();
});

test('changes the frame rate when the first viewer arrives and when the last viewer leaves', async () => {
  const tab = new Tab();
  const { capture, look, passes, seen } = captured(tab);
  await tab.shows('one');
  look.isWatched = true;
  capture.viewersChanged();
  capture.viewersChanged(); // a second viewer
  await tab.shows('two', 2);
  look.isWatched = false;
  capture.viewersChanged();
  await tab.shows('three', 3);
  assert.deepEqual(tab.inFlight, [2, 3, 2]);
  assert.deepEqual(seen(), ['one 1', 'two 1', 'three 1']);
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.equal(tab.saidOf(START), 3, 'no restart is needed if only one frame was in flight');
  capture.close();
});

test('restarts the screencast after two frames were in flight without viewers', async () => {
  const tab = new Tab();
  const { capture, passes, seen } = captured(tab);
  for (const image of ['one', 'two']) await tab.shows(image);
  await passes(WHILE_MS);
  await passes(WHILE_MS);
  assert.deepEqual([tab.saidOf(ALLOW), tab.saidOf(START), tab.saidOf(STOP)], [2, 2, 1]);
  assert.deepEqual(seen(), ['one 1', 'two 2']);
  capture.close();
});

test('counts frames that are still being handled, even after the frame rate has changed', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, look, passes, seen } = captured(tab, { isWatched: true, until: free.promise });
  await tab.shows('one');
  await tab.shows('two');
  look.isWatched = false;
  capture.viewersChanged();
  await tab.shows('three', 2);
  free.resolve();
  await passes(WHILE_MS);
  await tab.shows('four', 2);
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3', 'four 4']);
  capture.close();
});

test('captures the page again after the frame rate has changed if an earlier frame was rejected', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, look, passes, seen } = captured(tab, { isWatched: true, until: free.promise, result: 'rejected' });
  await tab.shows('one');
  look.isWatched = false;
  capture.viewersChanged();
  free.resolve();
  await passes(WHILE_MS);
  assert.deepEqual(tab.said, [START, STOP, START, STOP, START]);
  look.result = 'kept';
  await tab.shows('one', 3);
  assert.deepEqual(seen(), ['one 1', 'one 2'], 'the run between the two sent no frame');
  capture.close();
});

test('captures a page once more after an overmasked frame, even if the page has not changed', async () => {
  const tab = new Tab();
  const { capture, look, passes, seen } = captured(tab, {
    isWatched: true,
    until: Promise.resolve(),
    result: 'overmasked',
  });
  await tab.shows('one');
  await passes(WHILE_MS);
  assert.deepEqual(tab.said.slice(-2), [STOP, START]);
  look.result = 'kept';
  await tab.shows('one', 2);
  await passes(WHILE_MS);
  assert.deepEqual([seen(), tab.saidOf(START)], [['one 1', 'one 1'], 2]);
  capture.close();
});
