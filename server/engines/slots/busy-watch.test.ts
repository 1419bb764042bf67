import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import { BoxLoads } from './box-loads.ts';
import { BusyWatch, CHECK_INTERVAL_MS } from './busy-watch.ts';
import { Cgroup } from './cgroup.ts';

/** Simulates a machine with two boxes. The test sets how much processor time each of them uses. */
function makeTwoBoxes(t: TestContext, { isFirstClaimed = true } = {}) {
  const top = mkdtempSync(join(tmpdir(), 'berth-busy-watch-'));
  const clock = new ManualClock();
  const loads = new BoxLoads();
  const boxes = ['first', 'second'].map(name => {
    const folder = join(top, name);
    mkdirSync(folder);
    let usedMs = 0;
    let isCounted = true;
    const use = (ms: number): void => {
      usedMs += ms;
      const text = isCounted ? `${Math.round(usedMs * 1_000_000)}\n` : 'not a number\n';
      writeFileSync(join(folder, 'cpuacct.usage'), text);
    };
    const stopCounting = (): void => {
      isCounted = false;
    };
    use(0);
    writeFileSync(join(folder, 'cpu.idle'), '');
    const cgroup = new Cgroup([folder]);
    const isClaimed = isFirstClaimed || name !== 'first';
    const watch = new BusyWatch({ cgroup, loads, isClaimed, clock, log: silentLog });
    return { watch, use, stopCounting, isIdle: () => readFileSync(join(folder, 'cpu.idle'), 'utf8') === '1' };
  });
  const [first, second] = boxes;
  assert.ok(first && second);
  t.after(async () => {
    for (const { watch } of boxes) await watch.close();
    rmSync(top, { recursive: true });
  });
  const use = async (firstProcessors: number, secondProcessors: number, ms: number): Promise<void> => {
    for (let atMs = 0; atMs < ms; atMs += CHECK_INTERVAL_MS) {
      first.use(firstProcessors * CHECK_INTERVAL_MS);
      second.use(secondProcessors * CHECK_INTERVAL_MS);
      await clock.advance(CHECK_INTERVAL_MS);
    }
  };
  return { first, second, use };
}

test('schedules a busy box with idle priority while another box is calm, until the average processor use of the busy box is low', async t => {
  const { first, second, use } = makeTwoBoxes(t);
  await use(0.1, 0.1, 4_000);
  assert.equal(second.isIdle(), false, '0.1 processors are not busy');
  await use(0.1, 0.4, 4_000);
  assert.equal(second.isIdle(), false, '0.4 processors are not enough to become busy');
  await use(0.1, 1.5, 400);
  assert.equal(second.isIdle(), true, 'the box uses 1.5 processors');
  await use(0.1, 0.3, 20_000);
  assert.equal(second.isIdle(), true, 'a busy box that gets 0.3 processors is still busy');
  await use(0.1, 0.1, 1_000);
  assert.equal(second.isIdle(), true, 'a short pause is not enough');
  await use(0.1, 0.1, 4_000);
  assert.equal(second.isIdle(), false, 'the average has fallen below 0.2 processors');
  assert.equal(first.isIdle(), false, 'the calm box was never busy');
});

test('a busy box is scheduled normally if no other session is calm and in use', async t => {
  const { first, second, use } = makeTwoBoxes(t);
  await use(1, 1, 4_000);
  assert.deepEqual([first.isIdle(), second.isIdle()], [false, false], 'both are busy');
  await use(0.1, 1, 8_000);
  assert.deepEqual([first.isIdle(), second.isIdle()], [false, true], 'the first is calm');
  await use(0, 1, 20_000);
  assert.equal(second.isIdle(), true, 'the first was in use a moment ago');
  await use(0, 1, 40_000);
  assert.equal(second.isIdle(), false, 'the first has not been in use for 30 seconds');
});

test('a warm browser does not count as calm until a session claims it', async t => {
  const { first, second, use } = makeTwoBoxes(t, { isFirstClaimed: false });
  await use(0.1, 1, 8_000);
  assert.equal(second.isIdle(), false, 'the first is a warm browser');
  first.watch.claim();
  await use(0.1, 1, 400);
  assert.equal(second.isIdle(), true, 'a session uses the first');
});

test('a box whose processor time is no longer counted is scheduled normally', async t => {
  const { second, use } = makeTwoBoxes(t);
  await use(0.1, 1, 8_000);
  assert.equal(second.isIdle(), true);
  second.stopCounting();
  await use(0.1, 1, 400);
  assert.equal(second.isIdle(), false);
});

test('a box whose processor time is no longer counted does not count as calm', async t => {
  const { first, second, use } = makeTwoBoxes(t);
  await use(0.1, 1, 8_000);
  assert.equal(second.isIdle(), true);
  first.stopCounting();
  await use(0.1, 1, 600);
  assert.equal(second.isIdle(), false);
});
