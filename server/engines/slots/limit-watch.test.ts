import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HandClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import { Cgroup } from './cgroup.ts';
import { LimitWatch } from './limit-watch.ts';

test('measures an active box every two seconds, and an idle box every ten seconds', async t => {
  const top = mkdtempSync(join(tmpdir(), 'berth-limit-watch-'));
  const used = (ms: number): void => writeFileSync(join(top, 'cpuacct.usage'), `${ms * 1e6}\n`);
  const clock = new HandClock();
  used(100);
  let found = 0;
  const watch = new LimitWatch({
    folder: top,
    diskBytes: 0,
    cgroup: new Cgroup([top]),
    onDiskLimit: () => found++,
    clock,
    log: silentLog,
  });
  t.after(() => watch.close().then(() => rmSync(top, { recursive: true })));
  await clock.advance(1);
  assert.equal(found, 1, 'the first measurement is immediate');
  used(140);
  await clock.advance(8_000, 2_000);
  assert.equal(found, 1, 'with 40 ms of processor time the box counts as idle');
  await clock.advance(2_000);
  assert.equal(found, 2, 'an idle box is measured after ten seconds');
  used(190);
  await clock.advance(2_000);
  assert.equal(found, 3, 'the box has used 50 ms since the last measurement');
});
