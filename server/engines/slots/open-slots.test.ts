import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { isFault } from '../../kit/fault.ts';
import { silentLog } from '../../kit/log.ts';
import { assertEnoughUids, openSlots } from './open-slots.ts';

test('refuses more slots than there are user ids only if each browser has its own user id', () => {
  assertEnoughUids(998, 'root');
  assertEnoughUids(1017, 'rootless');
  assert.throws(
    () => assertEnoughUids(999, 'root'),
    error => isFault(error, 'isolation_unavailable') && /BERTH_SLOTS and BERTH_WARM/.test(error.message),
  );
});

/**
 * Calls `openSlots` with this data folder, and returns the error message. No browser is started, because the setup
 * fails first.
 */
async function startError(dataDir: string): Promise<string> {
  const limits = { memoryBytes: 1, diskBytes: 1, pids: 1, cpus: 1 };
  const slotsPromise = openSlots({
    ...{ dataDir, size: 1, limits, chromiumPath: process.execPath, isListeningOnLoopback: true },
    ...{ clock: new ManualClock(), log: silentLog },
    isolation: 'process',
  });
  return slotsPromise.then(
    () => 'opened',
    error => String(error instanceof Error ? error.message : error),
  );
}

test('the error for a failed setup of boxes contains the cause only once and the advice only once', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-open-'));
  after(() => rmSync(dataDir, { recursive: true }));
  const file = join(dataDir, 'install-id');
  writeFileSync(file, 'short');
  assert.equal(
    await startError(dataDir),
    `${file} does not contain eight hex digits. Remove the file while no session is running; the next start creates a new one.`,
  );
  rmSync(file);
  mkdirSync(file);
  assert.match(
    await startError(dataDir),
    /on this machine: the setup of boxes failed: EISDIR[^.]*\. Run `berth doctor` and fix what it reports\.$/,
  );
});

test('if no browser can run, a host that may lack browsers still opens its slots, but any other host refuses', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-front-'));
  after(() => rmSync(dataDir, { recursive: true }));
  const open = (mayLackBrowsers: boolean) =>
    openSlots({
      ...{ dataDir, size: 1, limits: { memoryBytes: 1, diskBytes: 1, pids: 1, cpus: 1 } },
      ...{ chromiumPath: '/nonexistent/chromium', isListeningOnLoopback: true, isolation: 'process' },
      ...{ clock: new ManualClock(), log: silentLog, mayLackBrowsers },
    });
  await assert.rejects(open(false), error => isFault(error, 'box_start_failed'));
  const slots = await open(true);
  assert.equal(slots.usedCount, 0);
  assert.equal(slots.engines.has('chromium'), false);
  await slots.close();
});
