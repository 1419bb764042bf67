// A registry package that only one test needs. npm fetches the package once, the checksum must match, and the package
// is kept in .berth. The package is not a dependency, so that `npm ci` does not fetch it for everyone.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnvironment } from '../../tools/setup.mjs';
import { CHECKOUT } from './server.ts';

const PACKAGES_FOLDER = join(CHECKOUT, '.berth/packages');
const COMMAND_MS_MAX = 300_000;

/** Returns the folder of the package. `integrity` is the checksum in the registry, `sha512-…`. */
export function fetchNpmPackage(name: string, version: string, integrity: string): string {
  const folder = join(PACKAGES_FOLDER, `${name.replace('/', '+')}-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(PACKAGES_FOLDER, { recursive: true });
  const stagingFolder = mkdtempSync(join(PACKAGES_FOLDER, 'fetching-'));
  try {
    run('npm', ['pack', `${name}@${version}`, '--silent', '--prefer-offline', '--pack-destination', stagingFolder]);
    const tarball = join(stagingFolder, readdirSync(stagingFolder)[0] ?? '');
    const sum = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    assert.equal(`sha512-${sum}`, integrity, `${name}@${version} is not the package that is expected`);
    run('tar', ['-xzf', tarball, '-C', stagingFolder]);
    if (!existsSync(folder)) renameSync(join(stagingFolder, 'package'), folder);
  } finally {
    rmSync(stagingFolder, { recursive: true, force: true });
  }
  return folder;
}

function run(command: string, args: readonly string[]): void {
  const env = cleanEnvironment(process.env);
  const { status, stderr } = spawnSync(command, args, { env, encoding: 'utf8', timeout: COMMAND_MS_MAX });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
}
