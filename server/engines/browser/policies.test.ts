import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { PolicyFolders } from './policies.ts';

const HOUR_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'berth-policies-'));
after(() => rmSync(folder, { recursive: true }));

test('processes in boxes can read the policies, whatever the umask', async () => {
  const umaskBefore = process.umask(0o077);
  after(() => process.umask(umaskBefore));
  const policyFolders = new PolicyFolders(folder, HOUR_MS, new ManualClock());
  const prepare = async (): Promise<string> => {
    const { path, release } = await policyFolders.prepare();
    release();
    return path;
  };
  const path = await prepare();
  const paths = ['', 'policies', 'policies/managed', 'policies/managed/berth.json'];
  const modes = (): number[] => paths.map(name => statSync(join(path, name)).mode & 0o777);
  assert.deepEqual(modes(), [0o755, 0o755, 0o755, 0o644]);
  for (const name of paths) chmodSync(join(path, name), 0o700);
  assert.equal(await prepare(), path);
  assert.deepEqual(modes(), [0o755, 0o755, 0o755, 0o644], 'also what an earlier server wrote');
});
