// Kills the browser of a session and all processes of its box, like a crash.
import { readdirSync, readFileSync } from 'node:fs';
import { killIfThere } from './kill-if-there.ts';
import { installIdOf } from './leftovers.ts';

/**
 * Kills the box of a session. The box must be named after the session, so it must be from a cold start. Throws if there
 * is none.
 */
export function killBox(dataDir: string, session: string): void {
  const mark = `BERTH_BOX=${installIdOf(dataDir)}/${session}`;
  const marked = readdirSync('/proc').filter(name => /^\d+$/.test(name) && environmentOf(name).includes(mark));
  if (marked.length === 0) throw new Error(`session ${session} has no box`);
  for (const pid of marked) killIfThere(Number(pid));
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
