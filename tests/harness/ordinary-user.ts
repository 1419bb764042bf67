// An ordinary user whom a test makes and removes again, with a copy of what the server needs to run: the checkout itself
// may stand where only root can look.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

const CHECKOUT = join(import.meta.dirname, '../..');
const PARTS = ['package.json', 'contract', 'server', 'cli', 'tests/harness'];

export interface OrdinaryUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** The copy. */
  readonly checkout: string;
  readonly node: string;
  /** Called before the user goes: ends what runs as this user. */
  readonly endings: Array<() => Promise<void>>;
}

/** Needs root. The user goes, and all that was made with it, when the test or the file is over. */
export function makeOrdinaryUser(): OrdinaryUser {
  const folder = mkdtempSync(join(tmpdir(), 'berth-user-'));
  chmodSync(folder, 0o755);
  const home = join(folder, 'home');
  const name = `berth-t${process.pid}`;
  run('useradd', '--no-create-home', '--user-group', '--home-dir', home, '--shell', '/usr/sbin/nologin', name);
  const endings: OrdinaryUser['endings'] = [];
  // Registered before anything was started as this user, so it is also run before that is ended by its own starter.
  after(async () => {
    await Promise.allSettled(endings.map(end => end())); // whose failures their starters tell
    run('userdel', '--force', name);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const [uid, gid] = [Number(run('id', '-u', name)), Number(run('id', '-g', name))];
  mkdirSync(home);
  chownSync(home, uid, gid);
  const checkout = join(folder, 'checkout');
  for (const part of [...PARTS, ...productionPackages()])
    cpSync(join(CHECKOUT, part), join(checkout, part), { recursive: true });
  return { uid, gid, home, checkout, node: join(checkout, 'node_modules/node/bin/node'), endings };
}

/** Folders of the packages that are installed for an operator, as the lock file has them. */
function productionPackages(): string[] {
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
