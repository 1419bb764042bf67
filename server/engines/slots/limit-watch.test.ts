import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import { Cgroup } from './cgroup.ts';
import { freeBytesOf, LimitWatch } from './limit-watch.ts';

test('measures an active box every two seconds, and an idle box every minute, or after ten seconds if the disk fills up', async t => {
  const top = mkdtempSync(join(tmpdir(), 'berth-limit-watch-'));
  const used = (ms: number): void => writeFileSync(join(top, 'cpuacct.usage'), `${ms * 1e6}\n`);
  const clock = new ManualClock();
  used(100);
  let measureCount = 0;
  let freeMib = 1_000;
  const watch = new LimitWatch({
    folder: top,
    diskBytes: 0,
    cgroup: new Cgroup([top]),
    onDiskLimit: () => measureCount++,
    freeBytes: () => freeMib * 1024 * 1024,
    clock,
    log: silentLog,
  });
  t.after(() => watch.close().then(() => rmSync(top, { recursive: true })));
  await clock.advance(1);
  assert.equal(measureCount, 1, 'the first measurement is immediate');
  used(140);
  freeMib = 985;
  await clock.advance(58_000, 2_000);
  assert.equal(measureCount, 1, 'with 40 ms of processor time and 15 MiB less on the disk the box counts as idle');
  await clock.advance(2_000);
  assert.equal(measureCount, 2, 'an idle box is measured after a minute');
  used(190);
  await clock.advance(2_000);
  assert.equal(measureCount, 3, 'the box has used 50 ms since the last measurement');
  freeMib = 969;
  await clock.advance(8_000, 2_000);
  assert.equal(measureCount, 3, 'less than ten seconds have passed');
  await clock.advance(2_000);
  assert.equal(measureCount, 4, 'the disk has 16 MiB less than at the last measurement');
});

test('measures the folder of a box every two seconds if the kernel does not count the processor time of the box', async t => {
  const top = mkdtempSync(join(tmpdir(), 'berth-limit-watch-'));
  writeFileSync(join(top, 'a file'), 'x');
  const clock = new ManualClock();
  let measureCount = 0;
  const onDiskLimit = (): void => void measureCount++;
  const watch = new LimitWatch({
    folder: top,
    diskBytes: 0,
    cgroup: new Cgroup([]),
    onDiskLimit,
    clock,
    log: silentLog,
  });
  t.after(() => watch.close().then(() => rmSync(top, { recursive: true })));
  await clock.advance(1);
  await clock.advance(4_000, 2_000);
  assert.equal(measureCount, 3);
});

test('measures an idle box every ten seconds if the free space of the disk cannot be read', async t => {
  const top = mkdtempSync(join(tmpdir(), 'berth-limit-watch-'));
  writeFileSync(join(top, 'cpuacct.usage'), '0');
  const clock = new ManualClock();
  let measureCount = 0;
  const onDiskLimit = (): void => void measureCount++;
  const options = { folder: top, diskBytes: 0, cgroup: new Cgroup([top]), onDiskLimit, clock, log: silentLog };
  const watch = new LimitWatch({ ...options, freeBytes: () => freeBytesOf(join(top, 'no such folder')) });
  t.after(() => watch.close().then(() => rmSync(top, { recursive: true })));
  await clock.advance(1);
  await clock.advance(20_000, 2_000);
  assert.equal(measureCount, 3);
});
