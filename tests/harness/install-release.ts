// A release that a test makes from the checkout and installs with npm into its own folder, as on another machine.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import { cleanEnvironment } from '../../tools/setup.mjs';
import { CHECKOUT } from './server.ts';

const COMMAND_TIMEOUT_MS = 400_000;

export function makeRelease(folder: string): string {
  const program = join(CHECKOUT, 'tools/release/release.ts');
  return runCommand(process.execPath, ['--disable-warning=ExperimentalWarning', program, '--to', folder]).trim();
}

/** Creates a folder that is removed at the end of the test or test file. */
export function createTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-release-'));
  // If the folder is used as a data folder, its browsers run as other users, who need access to it.
  chmodSync(folder, 0o755);
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/**
 * Installs the release, and returns the path of the command `berth`. Packages come from npm's cache if they are there.
 */
export function installRelease(tarball: string, prefix: string): string {
  const args = ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', tarball];
  runCommand('npm', [...args, '--loglevel=error']);
  return join(prefix, 'bin/berth');
}

/** Runs a command with the Node of the test first in PATH, for scripts that begin with `#!/usr/bin/env node`. */
export function runCommand(command: string, args: readonly string[]): string {
  const env = { ...cleanEnvironment(process.env), PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  const { status, stdout, stderr } = spawnSync(command, args, { env, encoding: 'utf8', timeout: COMMAND_TIMEOUT_MS });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
  return stdout;
}
