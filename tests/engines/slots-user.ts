// An ordinary user that a test creates and removes, with a copy of the files that the user needs. The checkout itself
// may be in a folder that only root can read.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHECKOUT = join(import.meta.dirname, '../..');
export const COPIED_PATHS = [
  'package.json',
  'server/kit',
  'server/engines/slots',
  'server/engines/profiles',
  'tests/harness/until.ts',
  'tests/engines',
  'tests/attacks',
];

export interface OrdinaryUser {
  readonly home: string;
  /** The copy of the checkout. */
  readonly checkout: string;
  /** The command prefix that runs a command as this user. */
  readonly prefix: readonly string[];
  readonly node: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Creates an ordinary user for the work and removes it afterwards. Needs root. */
export async function asOrdinaryUser<T>(work: (user: OrdinaryUser) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-user-'));
  const home = join(folder, 'home');
  const name = `berth-test-${process.pid}`;
  run('useradd', '--no-create-home', '--home-dir', home, '--shell', '/usr/sbin/nologin', name);
  try {
    const uid = Number(run('id', '-u', name));
    for (const part of COPIED_PATHS) cpSync(join(CHECKOUT, part), join(folder, 'checkout', part), { recursive: true });
    cpSync(process.execPath, join(folder, 'bin/node'));
    mkdirSync(home);
    await chmod(folder, 0o755);
    await chown(home, uid, uid);
    return await work({
      ...{ home, checkout: join(folder, 'checkout'), node: join(folder, 'bin/node') },
      prefix: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: home, TMPDIR: home },
    });
  } finally {
    run('userdel', '--force', name);
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}
