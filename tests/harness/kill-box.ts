// Kills the browser of a session and all processes of its box, like a crash.
import { readdirSync, readFileSync } from 'node:fs';
import { killIfRunning } from './kill-if-there.ts';
import { installIdOf } from './leftovers.ts';

/**
 * Kills the box of a session. The session must not have claimed a warm browser, because the box of a warm browser is
 * not named after the session. Throws if no box has this name.
 */
export function killBox(dataDir: string, session: string): void {
  const marker = `BERTH_BOX=${installIdOf(dataDir)}/${session}`;
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name) && environmentOf(name).includes(marker));
  if (pids.length === 0) throw new Error(`session ${session} has no box`);
  for (const pid of pids) killIfRunning(Number(pid));
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
