// All of the acceptance of files once more with a bucket in place of the disk. A short form of it is
// files-on-a-bucket.test.ts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { CHECKOUT } from '../harness/server.ts';

for (const name of ['uploads', 'downloads', 'contexts'])
  test(`${name} pass with a bucket`, { timeout: 600_000 }, async t => {
    const file = join(CHECKOUT, `tests/acceptance/${name}.test.ts`);
    // Without this mark of a test's own process it is a run of its own.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', file], {
      env: { ...env, BERTH_TEST_STORE: 's3' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGTERM'));
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(code, 0, said);
    assert.match(said, /^# pass [1-9]/m);
  });
