// The mount points of the form `root`, in a temporary folder instead of /run.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeStage } from './stage.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-stage-'));
after(() => rmSync(folder, { recursive: true }));
const stage = join(folder, 'berth');

/**
 * Makes the mount points as a server with this umask does. Returns the permissions of the folder that contains them.
 */
function makeWithUmask(umask: number): number {
  const umaskBefore = process.umask(umask);
  try {
    makeStage(stage, join(stage, 'session'));
  } finally {
    process.umask(umaskBefore);
  }
  return statSync(stage).mode & 0o777;
}

test('processes in boxes can enter the folder with the mount points, whatever the umask', () => {
  assert.equal(makeWithUmask(0o077), 0o711);
  assert.equal(statSync(join(stage, 'session')).mode & 0o777, 0o700);
  chmodSync(stage, 0o700);
  assert.equal(makeWithUmask(0o022), 0o711, 'as an earlier server left it');
  chmodSync(stage, 0o755);
  assert.equal(makeWithUmask(0o077), 0o755, 'what suffices is left alone');
});
