// An ordinary user that a test creates and removes, with a copy of the files that the server needs. The checkout itself
// may be in a folder that only root can read.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

const CHECKOUT = join(import.meta.dirname, '../..');
const COPIED_PATHS = ['package.json', 'contract', 'server', 'cli', 'tests/harness'];

export interface OrdinaryUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** The copy of the checkout. */
  readonly checkout: string;
  readonly node: string;
  /** Functions that end the processes of the user. They are called before the user is removed. */
  readonly cleanups: Array<() => Promise<void>>;
}

/** Creates the user. Needs root. Removes the user and all its files at the end of the test or test file. */
export function makeOrdinaryUser(): OrdinaryUser {
  const folder = mkdtempSync(join(tmpdir(), 'berth-user-'));
  chmodSync(folder, 0o755);
  const home = join(folder, 'home');
  const name = `berth-t${process.pid}`;
  run('useradd', '--no-create-home', '--user-group', '--home-dir', home, '--shell', '/usr/sbin/nologin', name);
  const cleanups: OrdinaryUser['cleanups'] = [];
  // This hook is registered before processes are started as this user, so it also runs before their own cleanup.
  after(async () => {
    await Promise.allSettled(cleanups.map(end => end())); // their own cleanup reports failures
    run('userdel', '--force', name);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const [uid, gid] = [Number(run('id', '-u', name)), Number(run('id', '-g', name))];
  mkdirSync(home);
  chownSync(home, uid, gid);
  const checkout = join(folder, 'checkout');
  for (const part of [...COPIED_PATHS, ...listPackageFolders()])
    cpSync(join(CHECKOUT, part), join(checkout, part), { recursive: true });
  return { uid, gid, home, checkout, node: join(checkout, 'node_modules/node/bin/node'), cleanups };
}

/** Folders of the production packages, according to the lock file. */
function listPackageFolders(): string[] {
  const lock: { packages: Record<string, { dev?: true }> } = JSON.parse(
    readFileSync(join(CHECKOUT, 'node_modules/.package-lock.json'), 'utf8'),
  );
  return Object.entries(lock.packages).flatMap(([path, { dev }]) => (dev ? [] : [path]));
}

function run(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}
