// A Chromium that hangs or fails at its start on request. A script runs first and then starts the real program. A copy
// of the script's shell is in the same folder, because a jail contains no shell. A change of behavior affects later
// starts only.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

const REAL_CHROMIUM = '/usr/lib/chromium/chromium';
/**
 * Longer than 3.6 s, the time limit that an official client uses for `create({ timeout: 3600 })` (docs/connecting.md).
 */
const START_DELAY_SECONDS = 4.5;

export interface FaultyChromium {
  /** The value of BERTH_CHROMIUM. */
  readonly path: string;
  /** Sets how later starts behave. With `slow`, Chromium starts late, by default by `START_DELAY_SECONDS`. */
  setBehavior(behavior: 'well' | 'slow' | 'hangs' | 'fails', delaySeconds?: number): void;
  /** Whether a slow or hanging Chromium is being started at the moment. */
  isStarting(): boolean;
  /** Replaces the program as a package manager does: writes a new file and renames it. */
  upgrade(): void;
}

export async function createFaultyChromium(): Promise<FaultyChromium> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-chromium-'));
  after(() => rmSync(folder, { recursive: true }));
  await chmod(folder, 0o755);
  for (const tool of ['dash', 'sleep']) copyFileSync(`/bin/${tool}`, join(folder, tool));
  const behaviorFile = join(folder, 'mood');
  const script = [
    `#!${folder}/dash`,
    `read -r mood delay < ${behaviorFile}`,
    `[ "$mood" = hangs ] && exec ${folder}/sleep 3600`,
    `[ "$mood" = slow ] && ${folder}/sleep "$delay"`,
    `[ "$mood" = fails ] && { echo 'this start of Chromium fails on purpose' >&2; exit 1; }`,
    `exec ${REAL_CHROMIUM} "$@"`,
    '',
  ].join('\n');
  const path = join(folder, 'chromium');
  const install = (): void => {
    writeFileSync(`${path}.new`, script, { mode: 0o755 });
    renameSync(`${path}.new`, path);
  };
  install();
  // Writes a new file and renames it, because a concurrent start must not find an empty file.
  const writeBehavior = (word: string, delaySeconds = START_DELAY_SECONDS): void => {
    writeFileSync(`${behaviorFile}.new`, `${word} ${delaySeconds}\n`);
    renameSync(`${behaviorFile}.new`, behaviorFile);
  };
  writeBehavior('well');
  const isStarting = (): boolean => readdirSync('/proc').some(name => commandOf(name).startsWith(`${folder}/sleep`));
  return { path, setBehavior: writeBehavior, isStarting, upgrade: install };
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
