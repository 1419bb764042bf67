// Finds the Chromium binary. The launcher in /usr/bin is a shell script that adds switches, so it is not used.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { within } from '../../kit/wait.ts';
import { isExecutable, TOOL_PATH } from './tools.ts';

const PLACES = [
  '/usr/lib/chromium/chromium',
  '/usr/lib/chromium-browser/chromium-browser',
  '/opt/google/chrome/chrome',
  '/opt/google/chrome-beta/chrome',
  '/opt/chromium.org/chromium/chromium-browser',
];
const VERSION_WITHIN_MS = 20_000;

export const findChromium = (explicit?: string): string | undefined =>
  (explicit === undefined ? PLACES : [explicit]).find(path => isExecutable(path) && isFile(path));

export const placesOfChromium: readonly string[] = PLACES;

/** "Chromium 156.0.7200.0", or undefined if the binary does not run. */
export async function versionOfChromium(path: string): Promise<string | undefined> {
  return within(VERSION_WITHIN_MS, 'chromium --version', async signal => {
    const child = spawn(path, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: TOOL_PATH }, signal });
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit', { signal })]);
    return /\S+ [\d.]+/.exec(output)?.[0];
  }).catch(() => undefined);
}

/** A fingerprint of the file, to notice an upgrade; undefined if the file does not exist. */
export function editionOf(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${path} ${stats.ino} ${stats.mtimeMs} ${stats.size}`;
}

const isFile = (path: string): boolean => statSync(path).isFile();
