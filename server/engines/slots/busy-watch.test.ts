import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import { BusyWatch, CHECK_EVERY_MS } from './busy-watch.ts';
import { Cgroup } from './cgroup.ts';

test('schedules a started or busy box as idle, until it has used little processor time for seconds', async t => {
  const top = mkdtempSync(join(tmpdir(), 'berth-busy-watch-'));
  const clock = new ManualClock();
  let usedMs = 0;
  const use = async (processors: number, ms: number): Promise<void> => {
    for (let atMs = 0; atMs < ms; atMs += CHECK_EVERY_MS) {
      usedMs += processors * CHECK_EVERY_MS;
      writeFileSync(join(top, 'cpuacct.usage'), `${Math.round(usedMs * 1e6)}\n`);
      await clock.advance(CHECK_EVERY_MS);
    }
  };
  const isIdle = (): string => readFileSync(join(top, 'cpu.idle'), 'utf8');
  writeFileSync(join(top, 'cpuacct.usage'), '0\n');
  writeFileSync(join(top, 'cpu.idle'), '');
  const watch = new BusyWatch({ cgroup: new Cgroup([top]), clock, log: silentLog });
  t.after(() => watch.close().then(() => rmSync(top, { recursive: true })));
  await use(0, 400);
  assert.equal(isIdle(), '1', 'the box has just started');
  await use(0, 3_000);
  assert.equal(isIdle(), '0', 'the box has been quiet for three seconds');
  await use(0.3, 5_000);
  assert.equal(isIdle(), '0', '0.3 processors are not enough to be busy');
  await use(1.5, 400);
  assert.equal(isIdle(), '1', 'the box uses 1.5 processors');
  await use(0.3, 20_000);
  assert.equal(isIdle(), '1', 'a busy box that gets 0.3 processors is still busy');
  await use(0.1, 1_000);
  assert.equal(isIdle(), '1', 'a short pause is not enough');
  await use(0.1, 4_000);
  assert.equal(isIdle(), '0', 'the average has fallen below 0.2 processors');
});
