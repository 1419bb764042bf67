// Runs all acceptance tests for files with an S3 bucket instead of the disk. files-on-a-bucket.test.ts is a short
// version.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { CHECKOUT } from '../harness/server.ts';

for (const name of ['uploads', 'downloads', 'contexts'])
  test(`${name}.test.ts passes if files are stored in an S3 bucket`, { timeout: 600_000 }, async t => {
    const file = join(CHECKOUT, `tests/acceptance/${name}.test.ts`);
    // With this variable, node --test would treat the run as a child of this test.
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
