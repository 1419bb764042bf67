// Runs two suites in a process of an ordinary user, which this test creates. One suite tests the slots engine. The
// other tests profiles, which are packed in the jails of these slots.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { withTimeout } from '../../server/kit/wait.ts';
import { asOrdinaryUser, type OrdinaryUser } from './slots-user.ts';

/** The time limit for both suites together. It is below the limit of the test runner. */
const SUITES_TIMEOUT_MS = 450_000;
const SUITE_TIMEOUT_MS = 400_000;

if (process.getuid?.() === 0)
  test('the slots and profiles suites pass when an ordinary user runs them', {
    timeout: SUITES_TIMEOUT_MS,
  }, async () => {
    await asOrdinaryUser(async user => {
      for (const suite of ['slots', 'profiles']) {
        const { code, output } = await runSuite(user, suite);
        assert.equal(code, 0, output);
        assert.match(output, new RegExp(`${suite}, form rootless`));
      }
    });
  });

function runSuite(user: OrdinaryUser, suite: string): Promise<{ code: unknown; output: string }> {
  const options = ['--test', '--test-timeout=180000', '--test-force-exit', '--test-reporter=spec'];
  const file = join(user.checkout, `tests/engines/${suite}.test.ts`);
  const [command = '', ...args] = [...user.prefix, user.node, ...options, file];
  return withTimeout(SUITE_TIMEOUT_MS, 'the suite of the ordinary user', async signal => {
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    const child = spawn(command, args, { cwd: user.home, env: user.env, stdio: [...stdio], signal });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return { code, output };
  });
}
