import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { SessionEgress } from '../sessions/browser-host.ts';
import { Meter, type Traffic } from './meter.ts';

const SECOND_MS = 1_000;

class Scene {
  readonly clock = new ManualClock();
  readonly savedTraffic: Traffic[] = [];
  usedUp = 0;
  isDown = false;
  bytes = { bytesUp: 0, bytesDown: 0, bytesByProxy: 0 };
  readonly meter: Meter;
  readonly runPromise: Promise<void>;

  constructor(budget?: number, before = { proxyBytes: 0, egressBytes: 0 }) {
    const row: SessionRow = Object.assign(Object.create(null), before);
    const egress: SessionEgress = Object.assign(Object.create(null), { counters: () => this.bytes });
    this.meter = new Meter({
      row,
      egress,
      budget,
      clock: this.clock,
      save: async traffic => {
        if (this.isDown) throw new Error('down');
        this.savedTraffic.push(traffic);
      },
      onUsedUp: () => {
        this.usedUp += 1;
      },
    });
    this.runPromise = this.meter.run();
  }
}

test('adds the bytes of earlier processes to the current count', () => {
  const scene = new Scene(undefined, { proxyBytes: 100, egressBytes: 1_000 });
  scene.bytes = { bytesUp: 1, bytesDown: 20, bytesByProxy: 7 };
  assert.deepEqual(scene.meter.traffic, { proxyBytes: 107, egressBytes: 1_021 });
  scene.meter.close();
});

test('saves the count every few seconds until the meter is closed, even if one save fails', async () => {
  const scene = new Scene();
  await scene.clock.advance(12 * SECOND_MS, SECOND_MS);
  assert.equal(scene.savedTraffic.length, 2);
  scene.isDown = true;
  await scene.clock.advance(6 * SECOND_MS, SECOND_MS);
  scene.isDown = false;
  await scene.clock.advance(6 * SECOND_MS, SECOND_MS);
  assert.ok(scene.savedTraffic.length > 2);
  scene.meter.close();
  await scene.runPromise;
});

test('checks the budget several times a second, and calls onUsedUp only once when the budget is reached', async () => {
  const scene = new Scene(1_000);
  scene.bytes = { bytesUp: 499, bytesDown: 500, bytesByProxy: 0 };
  await scene.clock.advance(10 * SECOND_MS, 50);
  assert.equal(scene.usedUp, 0);
  assert.ok(scene.savedTraffic.length > 0, 'the count is also saved if there is a budget');
  scene.bytes = { ...scene.bytes, bytesDown: 501 };
  await scene.clock.advance(200, 50);
  assert.equal(scene.usedUp, 1);
  await scene.clock.advance(10 * SECOND_MS, 50);
  assert.equal(scene.usedUp, 1);
  await scene.runPromise;
});

test('calls onUsedUp at the first check if an earlier process used up the budget', async () => {
  const scene = new Scene(1_000, { proxyBytes: 0, egressBytes: 1_000 });
  await scene.clock.advance(200, 50);
  assert.equal(scene.usedUp, 1);
});
