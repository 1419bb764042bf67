// The processes of a session's browser, seen from outside the box, with their CPU time.
import { readdirSync, readFileSync } from 'node:fs';

/** The maximum number of process levels from a renderer up to the box, with some margin. */
const GENERATIONS_MAX = 6;

export interface SessionProcess {
  readonly pid: number;
  readonly command: string;
}

/** Returns the processes that have a mount of the session, and their descendants, because renderers lack the mount. */
export function processesOf(sessionId: string): SessionProcess[] {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name));
  const belongsToSession = (pid: string | undefined, generation = 0): boolean =>
    pid !== undefined &&
    pid !== '0' &&
    generation < GENERATIONS_MAX &&
    (read(`/proc/${pid}/mountinfo`).includes(`/sessions/${sessionId}/`) ||
      belongsToSession(statOf(pid)[1], generation + 1));
  return pids
    .filter(pid => belongsToSession(pid))
    .map(pid => ({ pid: Number(pid), command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }));
}

/** Returns the main process of the browser. */
export function browserProcessOf(sessionId: string): SessionProcess {
  const browserProcess = processesOf(sessionId).find(
    ({ command }) => command.startsWith('/usr/lib/chromium/') && !command.includes(' --type='),
  );
  if (!browserProcess) throw new Error(`session ${sessionId} has no browser`);
  return browserProcess;
}

const renderersOf = (sessionId: string): SessionProcess[] =>
  processesOf(sessionId).filter(({ command }) => command.includes(' --type=renderer '));

/** Returns the process in which Chromium keeps local storage. Undefined with `chromium-headless-shell`, which has none. */
export const storageProcessOf = (sessionId: string): SessionProcess | undefined =>
  processesOf(sessionId).find(({ command }) => command.includes(' --utility-sub-type=storage.'));

/** Returns the renderer of the session that uses the most CPU time while `work` is running. */
export async function findBusiestRenderer(sessionId: string, work: () => Promise<unknown>): Promise<SessionProcess> {
  const ticksBefore = new Map(renderersOf(sessionId).map(({ pid }) => [pid, ticksOf(pid)]));
  await work();
  const [busiestEntry] = renderersOf(sessionId)
    .map(renderer => ({ renderer, ticks: ticksOf(renderer.pid) - (ticksBefore.get(renderer.pid) ?? 0) }))
    .sort((one, other) => other.ticks - one.ticks);
  if (!busiestEntry) throw new Error(`session ${sessionId} has no renderer`);
  return busiestEntry.renderer;
}

/** Returns the user mode CPU time in clock ticks. */
const ticksOf = (pid: number): number => Number(statOf(pid)[11] ?? 0);

/**
 * Returns the fields of /proc/PID/stat from the state (field 3) on. The second of the returned fields is the parent.
 */
function statOf(pid: number | string): string[] {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
