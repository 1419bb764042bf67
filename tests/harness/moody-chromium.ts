// A Chromium that can be told to hang or to fail when it is started: a script in front of the real one, with the shell it
// needs beside it, because a jail has none. Changing the mood concerns later starts only.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

const REAL = '/usr/lib/chromium/chromium';
/** More than official clients wait where a time limit is taken for their patience. */
export const SLOW_SECONDS = 4.5;

export interface MoodyChromium {
  /** For BERTH_CHROMIUM. */
  readonly path: string;
  /** `slow`: it starts, some seconds late. */
  mood(mood: 'well' | 'slow' | 'hangs' | 'fails'): void;
  /** Whether one that is in a slow or hanging mood is being started right now. */
  isStarting(): boolean;
  /** Puts another one in its place, as a package manager does: written beside it, then renamed. */
  upgrade(): void;
}

export async function moodyChromium(): Promise<MoodyChromium> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-chromium-'));
  after(() => rmSync(folder, { recursive: true }));
  await chmod(folder, 0o755);
  for (const tool of ['dash', 'sleep']) copyFileSync(`/bin/${tool}`, join(folder, tool));
  const mood = join(folder, 'mood');
  const script = [
    `#!${folder}/dash`,
    `read -r mood < ${mood}`,
    `[ "$mood" = hangs ] && exec ${folder}/sleep 3600`,
    `[ "$mood" = slow ] && ${folder}/sleep ${SLOW_SECONDS}`,
    `[ "$mood" = fails ] && { echo 'chromium is in a bad mood' >&2; exit 1; }`,
    `exec ${REAL} "$@"`,
    '',
  ].join('\n');
  const path = join(folder, 'chromium');
  const install = (): void => {
    writeFileSync(`${path}.new`, script, { mode: 0o755 });
    renameSync(`${path}.new`, path);
  };
  install();
  // One that starts at the same moment must not find it empty.
  const set = (word: string): void => {
    writeFileSync(`${mood}.new`, `${word}\n`);
    renameSync(`${mood}.new`, mood);
  };
  set('well');
  const isStarting = (): boolean => readdirSync('/proc').some(name => commandOf(name).startsWith(`${folder}/sleep`));
  return { path, mood: set, isStarting, upgrade: install };
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
