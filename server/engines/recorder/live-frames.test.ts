import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import type { TargetChannel } from './channel.ts';
import { type LiveFrame, LiveFrames } from './live-frames.ts';
import type { Recorder } from './recorder.ts';

const SESSION = 'session';

/** Creates a tab that sends a picture when a test calls `emitPageFrame`. */
function openTab() {
  let report: Parameters<TargetChannel['on']>[0] = () => {};
  const tab: TargetChannel = {
    ...{ id: 'tab', kind: 'page', url: 'https://page.test/', parent: undefined, isGone: false },
    send: async () => ({}),
    ...{ post: () => {}, whenGone: () => {} },
    on: listener => {
      report = listener;
      return { close: () => {} };
    },
  };
  let frameCount = 0;
  const emitFrame = async (frame: string): Promise<void> => {
    const metadata = { timestamp: ++frameCount, monotonicTimestamp: frameCount };
    report('Page.screencastFrame', { data: '', sessionId: frameCount, metadata }, Buffer.from(frame));
    await setImmediate();
  };
  return { tab, emitPageFrame: emitFrame };
}

/** Blackens all waiting pictures when a test calls `finish`. */
class SlowWorkers {
  readonly #pendingRuns: Array<() => void> = [];

  run(): Promise<{ jpeg: Uint8Array }> {
    return new Promise(resolve =>
      this.#pendingRuns.push(() => resolve({ jpeg: new Uint8Array(Buffer.from('black')) })),
    );
  }

  async finish(): Promise<void> {
    for (const done of this.#pendingRuns.splice(0)) done();
    await setImmediate();
  }
}

test('masks the frames of a hand-off that starts while frames of the previous hand-off are being masked', async () => {
  const workers = new SlowWorkers();
  const liveFrames = new LiveFrames({ sessionOf: () => undefined }, new ManualClock(), workers as unknown as Workers);
  const { tab, emitPageFrame } = openTab();
  const seen: LiveFrame[] = [];
  const subscription = liveFrames.watch(SESSION, tab, frame => seen.push(frame));
  await liveFrames.cover(SESSION, true);
  await emitPageFrame('of the first');
  const coverEnd = liveFrames.cover(SESSION, false);
  await liveFrames.cover(SESSION, true);
  await workers.finish();
  await coverEnd;
  await emitPageFrame('of the second');
  await workers.finish();
  assert.deepEqual(
    seen.map(({ jpeg, isCovered }) => [jpeg.toString(), isCovered]),
    [
      ['black', true],
      ['black', true],
    ],
  );
  await subscription.close();
});

test('shows a page without a recording to the viewer in control, and blackens it for other viewers if the session has masks', async () => {
  const workers = new SlowWorkers();
  const recording = { hubOfTarget: () => undefined, maskOfTarget: () => undefined, hasSecrets: false };
  for (const hasMasks of [true, false]) {
    const recorder = { sessionOf: () => ({ ...recording, hasMasks }) } as unknown as Recorder;
    const liveFrames = new LiveFrames(recorder, new ManualClock(), workers as unknown as Workers);
    const { tab, emitPageFrame } = openTab();
    const seen: LiveFrame[] = [];
    const subscription = liveFrames.watch(SESSION, tab, frame => seen.push(frame));
    await emitPageFrame('password');
    await workers.finish();
    assert.deepEqual(
      seen.map(({ jpeg, unmasked, isMaskUnknown }) => [jpeg.toString(), unmasked.toString(), isMaskUnknown]),
      [[hasMasks ? 'black' : 'password', 'password', hasMasks]],
    );
    await subscription.close();
  }
});

test('blackens the screenshot of a page that waits to be recorded, even if the page does not respond', async () => {
  const workers = new SlowWorkers();
  const mask = { maskStill: () => Promise.reject(new Error('the page does not respond')) };
  const recording = { hubOfTarget: () => undefined, maskOfTarget: () => mask, hasSecrets: false, hasMasks: true };
  const recorder = { sessionOf: () => recording } as unknown as Recorder;
  const liveFrames = new LiveFrames(recorder, new ManualClock(), workers as unknown as Workers);
  const data = Buffer.from('password').toString('base64');
  const send = async () => ({ data, cssVisualViewport: { clientWidth: 800, clientHeight: 600 } });
  const seen: LiveFrame[] = [];
  const subscription = liveFrames.watch(SESSION, { ...openTab().tab, send }, frame => seen.push(frame));
  await setImmediate();
  await workers.finish();
  assert.deepEqual(
    seen.map(({ jpeg, unmasked, isMaskUnknown }) => [jpeg.toString(), unmasked.toString(), isMaskUnknown]),
    [['black', 'password', true]],
  );
  await subscription.close();
});
