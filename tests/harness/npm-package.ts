// A registry package that only one test needs. npm fetches it once, its checksum must match, and it is kept in .berth.
// It is not a dependency, so that `npm ci` does not fetch it for everyone.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnvironment } from '../../tools/setup.mjs';
import { CHECKOUT } from './server.ts';

const KEPT = join(CHECKOUT, '.berth/packages');
const FETCHED_WITHIN_MS = 300_000;

/** Returns the folder of the package. `integrity` is the checksum in the registry, `sha512-…`. */
export function npmPackage(name: string, version: string, integrity: string): string {
  const folder = join(KEPT, `${name.replace('/', '+')}-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(KEPT, { recursive: true });
  const fresh = mkdtempSync(join(KEPT, 'fetching-'));
  try {
    run('npm', ['pack', `${name}@${version}`, '--silent', '--prefer-offline', '--pack-destination', fresh]);
    const tarball = join(fresh, readdirSync(fresh)[0] ?? '');
    const sum = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    assert.equal(`sha512-${sum}`, integrity, `${name}@${version} is not the package that is expected`);
    run('tar', ['-xzf', tarball, '-C', fresh]);
    if (!existsSync(folder)) renameSync(join(fresh, 'package'), folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return folder;
}

function run(command: string, args: readonly string[]): void {
  const env = cleanEnvironment(process.env);
  const { status, stderr } = spawnSync(command, args, { env, encoding: 'utf8', timeout: FETCHED_WITHIN_MS });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
}
