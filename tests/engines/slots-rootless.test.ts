// The slots engine as an ordinary user, whom this test makes and removes: the same suite, in a process of that user.
// Everything it needs is copied, because the checkout may stand where only root can look.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { within } from '../../server/kit/wait.ts';

const SUITE_WITHIN_MS = 240_000;
const CHECKOUT = join(import.meta.dirname, '../..');
const PARTS = ['package.json', 'server/kit', 'server/engines/slots', 'tests/engines'];

if (process.getuid?.() === 0)
  test('the suite passes as an ordinary user', { timeout: SUITE_WITHIN_MS + 30_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-rootless-'));
    const name = `berth-test-${process.pid}`;
    run('useradd', '--no-create-home', '--home-dir', join(folder, 'home'), '--shell', '/usr/sbin/nologin', name);
    try {
      const uid = Number(run('id', '-u', name));
      await layOut(folder, uid);
      const { code, output } = await runSuite(folder, uid);
      assert.equal(code, 0, output);
      assert.match(output, /slots, form rootless/);
    } finally {
      run('userdel', name);
      rmSync(folder, { recursive: true, force: true });
    }
  });

function run(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

async function layOut(folder: string, uid: number): Promise<void> {
  for (const part of PARTS) cpSync(join(CHECKOUT, part), join(folder, 'checkout', part), { recursive: true });
  cpSync(process.execPath, join(folder, 'bin/node'));
  mkdirSync(join(folder, 'home'));
  await chmod(folder, 0o755);
  await chown(join(folder, 'home'), uid, uid);
}

async function runSuite(folder: string, uid: number): Promise<{ code: unknown; output: string }> {
  const file = join(folder, 'checkout/tests/engines/slots.test.ts');
  const user = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  const command = [
    'setpriv',
    ...user,
    '--',
    join(folder, 'bin/node'),
    '--test',
    '--test-timeout=60000',
    '--test-force-exit',
    '--test-reporter=spec',
    file,
  ] as const;
  return within(SUITE_WITHIN_MS, 'the suite of the ordinary user', async signal => {
    const home = join(folder, 'home');
    const env = { PATH: '/usr/bin:/bin', HOME: home, TMPDIR: home };
    const child = spawn(command[0], command.slice(1), { cwd: home, env, stdio: ['ignore', 'pipe', 'inherit'], signal });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return { code, output };
  });
}
