// Finds the binary of an engine. The launchers in /usr/bin are shell scripts that add switches, so they are not used.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { withTimeout } from '../../kit/wait.ts';
import type { Engine } from './slots.ts';
import { isExecutable, TOOL_PATH } from './tools.ts';

interface Installation {
  readonly usualPaths: readonly string[];
  /** The Debian package. */
  readonly packageName: string;
  /** The setting that specifies another path. */
  readonly settingName: string;
}

const INSTALLATIONS: Readonly<Record<Engine, Installation>> = {
  chromium: {
    usualPaths: [
      '/usr/lib/chromium/chromium',
      '/usr/lib/chromium-browser/chromium-browser',
      '/opt/google/chrome/chrome',
      '/opt/google/chrome-beta/chrome',
      '/opt/chromium.org/chromium/chromium-browser',
    ],
    packageName: 'chromium',
    settingName: 'BERTH_CHROMIUM',
  },
  'headless-shell': {
    usualPaths: ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/headless_shell'],
    packageName: 'chromium-headless-shell',
    settingName: 'BERTH_HEADLESS_SHELL',
  },
};
export const ENGINES = Object.keys(INSTALLATIONS) as readonly Engine[]; // Object.keys() returns string[].
const VERSION_TIMEOUT_MS = 20_000;

export const findBrowser = (engine: Engine, explicitPath?: string): string | undefined =>
  candidatePaths(engine, explicitPath).find(path => isExecutable(path) && isFile(path));

export const findChromium = (explicitPath?: string): string | undefined => findBrowser('chromium', explicitPath);

/** Returns where the engine was searched for, and what the operator can do if it is missing. */
export function explainMissingEngine(
  engine: Engine,
  explicitPath?: string,
): { readonly why: string; readonly cure: string } {
  const { packageName: name, settingName } = INSTALLATIONS[engine];
  return {
    why: `not found at ${candidatePaths(engine, explicitPath).join(', ')}`,
    cure: `Install the engine: \`apt-get install ${name}\`. Or set ${settingName} to the path of the binary, not of its launcher script.`,
  };
}

const candidatePaths = (engine: Engine, explicitPath?: string): readonly string[] =>
  explicitPath === undefined ? INSTALLATIONS[engine].usualPaths : [explicitPath];

/** Returns a string such as "Chromium 156.0.7200.0", or undefined if the binary does not run. */
export async function readChromiumVersion(path: string): Promise<string | undefined> {
  return withTimeout(VERSION_TIMEOUT_MS, 'chromium --version', async signal => {
    const child = spawn(path, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: TOOL_PATH }, signal });
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit', { signal })]);
    return /\S+ [\d.]+/.exec(output)?.[0];
  }).catch(() => undefined);
}

/** A fingerprint of the file, to detect an upgrade. Undefined if the file does not exist. */
export function fileFingerprint(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${path} ${stats.ino} ${stats.mtimeMs} ${stats.size}`;
}

const isFile = (path: string): boolean => statSync(path).isFile();
