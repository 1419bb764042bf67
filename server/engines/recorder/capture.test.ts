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
  readonly sentMethods: string[] = [];
  /** The values of `maxFramesInFlight` with which the screencast was started, in order. */
  readonly inFlight: unknown[] = [];
  refusals: number;
  /** The wall-clock time, which is the same for the browser and the server. */
  nowMs = 0;
  #report: Parameters<TargetChannel['on']>[0] = () => {};

  constructor(refusals = 0) {
    this.refusals = refusals;
  }

  async send(method: string, { maxFramesInFlight }: JsonObject): Promise<JsonObject> {
    this.sentMethods.push(method);
    this.inFlight.push(maxFramesInFlight);
    if (this.refusals-- > 0) throw new Error('Internal error');
    return {};
  }

  post(method: string): void {
    this.sentMethods.push(method);
  }

  on(listener: Parameters<TargetChannel['on']>[0]) {
    this.#report = listener;
    return { close: () => {} };
  }

  whenGone(): void {}

  async emit(method: string, params: JsonObject = {}, image = 'picture'): Promise<void> {
    this.#report(method, params, Buffer.from(image));
    await setImmediate();
  }

  /** `lateMs`: the time since the frame was painted. */
  async emitFrame(image: string, run = 1, lateMs = 0): Promise<void> {
    const paintedMs = this.nowMs - lateMs;
    const metadata = { timestamp: paintedMs / 1_000, monotonicTimestamp: (BROWSER_CLOCK_MS + paintedMs) / 1_000 };
    await this.emit('Page.screencastFrame', { data: '', sessionId: run, metadata }, image);
  }

  sentCount(method: string): number {
    return this.sentMethods.filter(one => one === method).length;
  }
}

const START_METHOD = 'Page.startScreencast';
const STOP_METHOD = 'Page.stopScreencast';
const ACKNOWLEDGE_METHOD = 'Page.screencastFrameAck';
/** Longer than any frame period. */
const LONG_WAIT_MS = 1_000;
/** The time of the browser's monotonic clock when the server's monotonic clock is at zero. */
const BROWSER_CLOCK_MS = 5_000;
/** Time between two painted changes. */
const PAINT_INTERVAL_MS = 17;

interface CaptureConditions {
  isWatched: boolean;
  /** Frames are not handled until this resolves. */
  until: Promise<void>;
  result?: FrameResult;
}

function startCapture(
  tab: Tab,
  conditions: CaptureConditions = { isWatched: false, until: Promise.resolve() },
  isUnpainted = false,
) {
  // The clock moves only when a test advances it.
  const clock = new ManualClock();
  const seen: CapturedFrame[] = [];
  const onFrame = async (frame: CapturedFrame): Promise<FrameResult> => {
    await conditions.until;
    seen.push(frame);
    return conditions.result ?? 'kept';
  };
  const capture = new Capture({
    channel: tab,
    clock,
    isUnpainted,
    isWatched: () => conditions.isWatched,
    onFrame,
    onVisibility: () => {},
  });
  const advance = async (ms: number): Promise<void> => {
    await setImmediate();
    tab.nowMs += ms;
    await clock.advance(ms);
  };
  return {
    capture,
    advanceTime: advance,
    look: conditions,
    frames: () => seen.length,
    seen: () => seen.map(({ jpeg, framesAhead }) => `${jpeg} ${framesAhead}`),
  };
}

test('retries a failed start of the screencast until a start succeeds or the capture is closed', async () => {
  const tab = new Tab(2);
  const { capture, advanceTime } = startCapture(tab);
  await advanceTime(1_000);
  await advanceTime(1_000);
  await advanceTime(1_000);
  assert.deepEqual(tab.sentMethods, [START_METHOD, START_METHOD, START_METHOD]);
  capture.close();
  const otherTab = new Tab(9);
  const { capture: closedCapture, advanceTime: advanceOther } = startCapture(otherTab);
  closedCapture.close();
  await advanceOther(1_000);
  assert.deepEqual(otherTab.sentMethods, [START_METHOD, STOP_METHOD]);
});

const startUnpaintedCapture = (conditions?: CaptureConditions) => {
  const tab = new Tab();
  return { tab, ...startCapture(tab, conditions, true) };
};

const ENABLE_METHODS = ['Page.enable', 'Page.setLifecycleEventsEnabled'];

test('waits 750 milliseconds before it captures a page that has not painted yet', async () => {
  const { tab, capture, advanceTime } = startUnpaintedCapture();
  await tab.emit('Page.frameNavigated', { frame: { id: 'main', url: 'https://page.test/' } });
  await tab.emit('Page.lifecycleEvent', { name: 'load' });
  await advanceTime(749);
  assert.deepEqual(tab.sentMethods, ENABLE_METHODS);
  await advanceTime(1);
  assert.deepEqual(tab.sentMethods, [...ENABLE_METHODS, START_METHOD]);
  await tab.emit('Page.lifecycleEvent', { name: 'firstPaint' });
  assert.deepEqual(tab.sentMethods, [...ENABLE_METHODS, START_METHOD]);
  capture.close();
  const { tab: otherTab, capture: closedCapture, advanceTime: advanceOther } = startUnpaintedCapture();
  closedCapture.close();
  await advanceOther(1_000);
  assert.deepEqual(otherTab.sentMethods, ENABLE_METHODS);
});

test('captures a page immediately on its first paint, when a viewer arrives, or when a frame is requested', async () => {
  const conditions: CaptureConditions = { isWatched: false, until: Promise.resolve() };
  const causes: ReadonlyArray<(page: ReturnType<typeof startUnpaintedCapture>) => unknown> = [
    ({ tab }) => tab.emit('Page.lifecycleEvent', { name: 'firstPaint' }),
    ({ capture }) => capture.refresh(),
    ({ capture }) => {
      conditions.isWatched = true;
      capture.onViewersChanged();
    },
  ];
  for (const cause of causes) {
    const page = startUnpaintedCapture(conditions);
    await cause(page);
    assert.deepEqual(page.tab.sentMethods, [...ENABLE_METHODS, START_METHOD]);
    await page.advanceTime(LONG_WAIT_MS);
    assert.deepEqual(page.tab.sentMethods, [...ENABLE_METHODS, START_METHOD]);
    page.capture.close();
  }
});

test('restarts the screencast for a loaded page only if the page has not sent a frame', async () => {
  const tab = new Tab();
  const { capture, advanceTime, frames } = startCapture(tab);
  await tab.emit('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.emit('Page.loadEventFired');
  await advanceTime(1_000);
  assert.deepEqual(tab.sentMethods, [START_METHOD, STOP_METHOD, START_METHOD]);
  await tab.emit('Page.frameNavigated', { frame: { id: 'main' } });
  await tab.emit('Page.frameNavigated', { frame: { id: 'inner', parentId: 'main' } });
  await tab.emitFrame('picture');
  const said = tab.sentMethods.length;
  await tab.emit('Page.loadEventFired');
  assert.deepEqual([frames(), tab.sentMethods.slice(said).filter(method => method === STOP_METHOD)], [1, []]);
  capture.close();
});

test('while there are viewers, allows three frames in flight, keeps the frames in order, and does not restart the screencast', async () => {
  const tab = new Tab();
  const { capture, advanceTime, seen } = startCapture(tab, { isWatched: true, until: Promise.resolve() });
  for (const image of ['one', 'two', 'three']) {
    await advanceTime(PAINT_INTERVAL_MS);
    await tab.emitFrame(image);
  }
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3']);
  assert.ok(tab.sentCount(ACKNOWLEDGE_METHOD) >= 1, 'the first frame is acknowledged immediately');
  await advanceTime(LONG_WAIT_MS);
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual([tab.inFlight, tab.sentCount(ACKNOWLEDGE_METHOD), tab.sentCount(STOP_METHOD)], [[3], 3, 0]);
  capture.close();
});

test('restarts the screencast for a change that occurred while three frames were in flight, and ignores frames from before the restart', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, advanceTime, seen } = startCapture(tab, { isWatched: true, until: free.promise });
  for (const image of ['one', 'two', 'three']) await tab.emitFrame(image);
  await advanceTime(LONG_WAIT_MS);
  assert.equal(tab.sentCount(ACKNOWLEDGE_METHOD), 0, 'no frame is acknowledged before it has been handled');
  free.resolve();
  await advanceTime(LONG_WAIT_MS);
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual([tab.sentCount(START_METHOD), tab.sentCount(STOP_METHOD)], [2, 1]);
  await tab.emitFrame('late');
  await tab.emitFrame('four', 2);
  assert.deepEqual(seen().slice(3), ['four 1']);
  capture.close();
});

test('acknowledges but does not show a frame that arrives after a newer frame', async () => {
  for (const isWatched of [true, false]) {
    const tab = new Tab();
    const { capture, advanceTime, seen } = startCapture(tab, { isWatched, until: Promise.resolve() });
    await advanceTime(LONG_WAIT_MS);
    await tab.emitFrame('newer', 1, 10);
    await tab.emitFrame('older', 1, 30);
    await advanceTime(LONG_WAIT_MS);
    assert.deepEqual([seen(), tab.sentCount(ACKNOWLEDGE_METHOD)], [['newer 1'], 2]);
    await tab.emitFrame('newest', 1 + tab.sentCount(STOP_METHOD));
    assert.equal(seen().length, 2);
    capture.close();
  }
});

test('restarts the screencast if a frame was painted before the previous frame was acknowledged, even if all frames arrive late', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, advanceTime } = startCapture(tab, { isWatched: false, until: free.promise });
  await advanceTime(LONG_WAIT_MS);
  await tab.emitFrame('one', 1, 300);
  await advanceTime(PAINT_INTERVAL_MS);
  free.resolve();
  await advanceTime(1); // The first frame is acknowledged 200 ms after the second frame was painted.
  await advanceTime(100);
  await tab.emitFrame('two', 1, 300);
  await advanceTime(LONG_WAIT_MS);
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual(
    [tab.sentCount(ACKNOWLEDGE_METHOD), tab.sentCount(START_METHOD), tab.sentCount(STOP_METHOD)],
    [2, 2, 1],
  );
  capture.close();
});

test('allows three frames in flight from the first viewer on, and two after the last viewer has left', async () => {
  const tab = new Tab();
  const { capture, look: conditions, advanceTime, seen } = startCapture(tab);
  await tab.emitFrame('one');
  conditions.isWatched = true;
  capture.onViewersChanged();
  capture.onViewersChanged(); // a second viewer
  await tab.emitFrame('two', 2);
  conditions.isWatched = false;
  capture.onViewersChanged();
  await tab.emitFrame('three', 3);
  assert.deepEqual(tab.inFlight, [2, 3, 2]);
  assert.deepEqual(seen(), ['one 1', 'two 1', 'three 1']);
  await advanceTime(LONG_WAIT_MS);
  await advanceTime(LONG_WAIT_MS);
  assert.equal(tab.sentCount(START_METHOD), 3, 'no restart is needed if only one frame was in flight');
  capture.close();
});

test('without viewers, restarts the screencast after two frames were in flight', async () => {
  const tab = new Tab();
  const { capture, advanceTime, seen } = startCapture(tab);
  for (const image of ['one', 'two']) await tab.emitFrame(image);
  await advanceTime(LONG_WAIT_MS);
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual(
    [tab.sentCount(ACKNOWLEDGE_METHOD), tab.sentCount(START_METHOD), tab.sentCount(STOP_METHOD)],
    [2, 2, 1],
  );
  assert.deepEqual(seen(), ['one 1', 'two 2']);
  capture.close();
});

test('framesAhead includes frames that are still being handled, even after the frame rate has changed', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const { capture, look: conditions, advanceTime, seen } = startCapture(tab, { isWatched: true, until: free.promise });
  await tab.emitFrame('one');
  await tab.emitFrame('two');
  conditions.isWatched = false;
  capture.onViewersChanged();
  await tab.emitFrame('three', 2);
  free.resolve();
  await advanceTime(LONG_WAIT_MS);
  await tab.emitFrame('four', 2);
  assert.deepEqual(seen(), ['one 1', 'two 2', 'three 3', 'four 4']);
  capture.close();
});

test('captures the page again after the frame rate has changed if an earlier frame was rejected', async () => {
  const tab = new Tab();
  const free = Promise.withResolvers<void>();
  const {
    capture,
    look: conditions,
    advanceTime,
    seen,
  } = startCapture(tab, {
    isWatched: true,
    until: free.promise,
    result: 'rejected',
  });
  await tab.emitFrame('one');
  conditions.isWatched = false;
  capture.onViewersChanged();
  free.resolve();
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual(tab.sentMethods, [START_METHOD, STOP_METHOD, START_METHOD, STOP_METHOD, START_METHOD]);
  conditions.result = 'kept';
  await tab.emitFrame('one', 3);
  assert.deepEqual(seen(), ['one 1', 'one 2'], 'the run between the two sent no frame');
  capture.close();
});

test('captures a page once more after a frame in which a larger area than necessary was masked, even if the page has not changed', async () => {
  const tab = new Tab();
  const {
    capture,
    look: conditions,
    advanceTime,
    seen,
  } = startCapture(tab, {
    isWatched: true,
    until: Promise.resolve(),
    result: 'overmasked',
  });
  await tab.emitFrame('one');
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual(tab.sentMethods.slice(-2), [STOP_METHOD, START_METHOD]);
  conditions.result = 'kept';
  await tab.emitFrame('one', 2);
  await advanceTime(LONG_WAIT_MS);
  assert.deepEqual([seen(), tab.sentCount(START_METHOD)], [['one 1', 'one 1'], 2]);
  capture.close();
});

const startOvermaskedCapture = () => {
  const tab = new Tab();
  const conditions: CaptureConditions = { isWatched: false, until: Promise.resolve(), result: 'overmasked' };
  return { tab, conditions, ...startCapture(tab, conditions) };
};

test('passes on an unchanged frame that follows a frame in which a larger area than necessary was masked', async () => {
  const { tab, capture, seen } = startOvermaskedCapture();
  await tab.emitFrame('one');
  await tab.emitFrame('one');
  assert.deepEqual(seen(), ['one 1', 'one 2']);
  capture.close();
});

test('passes on an unchanged frame after one with too large a mask, even if the page is captured one frame at a time', async () => {
  const { tab, capture, conditions, advanceTime, seen } = startOvermaskedCapture();
  conditions.result = 'kept';
  for (const image of ['one', 'two', 'three', 'four', 'five']) {
    await tab.emitFrame(image);
    await advanceTime(500);
  }
  assert.deepEqual(tab.sentMethods.slice(-2), [STOP_METHOD, START_METHOD], 'the page is not captured in pulses');
  conditions.result = 'overmasked';
  await tab.emitFrame('six', 2);
  await advanceTime(500);
  conditions.result = 'kept';
  await tab.emitFrame('six', 3);
  assert.deepEqual(seen().slice(-2), ['six 1', 'six 1']);
  capture.close();
});
