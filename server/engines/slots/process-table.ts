// Reads /proc. Pids are reused, so a process is identified by its pid and its start time.
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import type { Switch } from './slots.ts';

export interface Process {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks from boot to the process's start. */
  readonly startTicks: string;
}

/** Entries of /proc beyond this number are ignored. No supported machine has this many processes. */
const PROCESSES_MAX = 200_000;

export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly startTicks: string;
}

/** Returns undefined if no such process exists, or if it is a zombie. */
function stat(pid: number): Stat | undefined {
  const foundStat = statIncludingDead(pid);
  return foundStat && foundStat.state !== 'Z' && foundStat.state !== 'X' ? foundStat : undefined;
}

function statIncludingDead(pid: number): Stat | undefined {
  const text = readProc(`${pid}/stat`);
  if (text === undefined) return undefined;
  // The command's name is in parentheses, and may itself contain parentheses and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, session, startTicks] = [fields[0], fields[1], fields[3], fields[19]];
  if (!state || !parent || !session || !startTicks) return undefined;
  return { state, parent: Number(parent), session: Number(session), startTicks };
}

/** Finds a child that was just spawned, even if it is a zombie already. */
export function findChild(pid: number): Process | undefined {
  const startTicks = statIncludingDead(pid)?.startTicks;
  return startTicks === undefined ? undefined : { pid, startTicks };
}

export function findProcess(pid: number): Process | undefined {
  const startTicks = stat(pid)?.startTicks;
  return startTicks === undefined ? undefined : { pid, startTicks };
}

export const isAlive = (process: Process): boolean => stat(process.pid)?.startTicks === process.startTicks;

/** Sends SIGKILL if the pid still belongs to the same process. */
export function killProcess(victim: Process): void {
  if (!isAlive(victim)) return;
  try {
    process.kill(victim.pid, 'SIGKILL');
  } catch {
    // The process ended between the check and the signal.
  }
}

/** Children of the process's main thread. */
export const childrenOf = (pid: number): readonly number[] =>
  (readProc(`${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);

/** Maximum depth of the search. It is limited because a process may fork while the search runs. */
const DEPTH_MAX = 16;

export function descendantsOf(pid: number, depth = 0): readonly number[] {
  if (depth > DEPTH_MAX) return [];
  return childrenOf(pid).flatMap(child => [child, ...descendantsOf(child, depth + 1)]);
}

/** A search for descendants ends after this many, because the processes of a box may be many, and hostile. */
const DESCENDANTS_MAX = 500;
/** The switches that tell Chromium's processes apart are at the beginning of their command lines. */
const COMMAND_LINE_BYTES_MAX = 4096;

const JOINED_ARGS_MAX = 6;

/**
 * Returns the descendants of a process whose command line has this switch. If a switch occurs more than once, only the
 * first one counts.
 */
export function descendantsWith(pid: number, switchText: Switch): readonly Process[] {
  const found: Process[] = [];
  const parents = [pid];
  for (let count = 0; parents.length > 0 && count < DESCENDANTS_MAX; ) {
    const parent = parents.shift() ?? 0;
    for (const child of childrenOf(parent)) {
      if (++count > DESCENDANTS_MAX) break;
      const childStat = stat(child);
      // The child may have ended since it was listed, and its pid may belong to a process of another box.
      if (childStat?.parent !== parent) continue;
      parents.push(child);
      const descendant = { pid: child, startTicks: childStat.startTicks };
      if (hasSwitch(child, switchText) && isAlive(descendant)) found.push(descendant);
    }
  }
  return found;
}

function hasSwitch(pid: number, switchText: Switch): boolean {
  const args = (readProc(`${pid}/cmdline`, COMMAND_LINE_BYTES_MAX) ?? '').split('\0');
  // Processes that Chromium's zygote has forked separate their arguments by spaces. Spaces inside of a later argument,
  // such as the user agent, must not separate anything.
  const isJoined = args.slice(1).every(arg => arg === '');
  const parts = isJoined ? (args[0] ?? '').split(' ', JOINED_ARGS_MAX) : args;
  const name = switchText.slice(0, switchText.indexOf('=') + 1);
  return parts.find(part => part.startsWith(name)) === switchText;
}

/**
 * Returns one line for each thread of a process, with its state and its numbers of context switches. The line of a thread
 * that has run since an earlier call is different.
 */
export const threadsOf = (pid: number): readonly string[] =>
  threadIdsOf(pid).map(thread => {
    const status = readProc(`${pid}/task/${thread}/status`) ?? '';
    const [, state] = /^State:\t(\w)/m.exec(status) ?? [];
    const switches = status.match(/^(?:non)?voluntary_ctxt_switches:\t\d+/gm) ?? [];
    return [state, thread, ...switches].join(' ');
  });

export const threadIdsOf = (pid: number): readonly string[] => listFolder(`/proc/${pid}/task`);

/** Returns how many nested pid namespaces the process is in, and how many seccomp filters apply to it. */
export function sandboxOf(pid: number): { readonly depth: number; readonly filters: number } | undefined {
  const status = readProc(`${pid}/status`) ?? '';
  const pids = /^NSpid:\t(.*)$/m.exec(status)?.[1];
  const filters = /^Seccomp_filters:\t(\d+)$/m.exec(status)?.[1];
  return pids === undefined || filters === undefined
    ? undefined
    : { depth: pids.split(/\s+/).length, filters: Number(filters) };
}

/** Returns the pid of the process in its innermost pid namespace. */
export function innermostPid(pid: number): number | undefined {
  const line = /^NSpid:\t(.*)$/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  const lastPid = line?.split(/\s+/).at(-1);
  return lastPid === undefined ? undefined : Number(lastPid);
}

export type Namespace = 'net' | 'pid' | 'mnt' | 'user' | 'ipc' | 'uts';

export function namespaceOf(pid: number | 'self', kind: Namespace): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return undefined;
  }
}

export const commandOf = (pid: number): string => (readProc(`${pid}/comm`) ?? '').trim();

/** Returns the running processes of a process session (setsid), given the pid of its leader. */
export const processesOfSession = (leader: number): readonly Process[] =>
  allPids().flatMap(pid => {
    const foundStat = stat(pid);
    return foundStat?.session === leader ? [{ pid, startTicks: foundStat.startTicks }] : [];
  });

export interface MarkedProcess extends Process {
  /** The value of the mark variable in the environment of the process. */
  readonly mark: string;
}

/**
 * Returns the running processes that have this variable in their environment. Processes whose environment the server
 * may not read are left out.
 */
export const markedProcesses = (variable: string): readonly MarkedProcess[] =>
  allPids().flatMap(pid => {
    const mark = environmentOf(pid)
      .find(entry => entry.startsWith(`${variable}=`))
      ?.slice(variable.length + 1);
    const foundProcess = mark === undefined ? undefined : findProcess(pid);
    return mark === undefined || foundProcess === undefined ? [] : [{ ...foundProcess, mark }];
  });

const environmentOf = (pid: number): readonly string[] => (readProc(`${pid}/environ`) ?? '').split('\0');

const allPids = (): readonly number[] =>
  listFolder('/proc')
    .filter(name => /^\d+$/.test(name))
    .slice(0, PROCESSES_MAX)
    .map(Number);

/** Returns an empty list if the folder does not exist, because the process has ended. */
function listFolder(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/**
 * The maximum number of bytes that are read from a file. `cmdline` and `environ` show the memory of their process, which can
 * make them as long as it wants.
 */
const FILE_BYTES_MAX = 64 * 1024;
const readBuffer = Buffer.allocUnsafe(FILE_BYTES_MAX);

/** Returns the beginning of a file, or undefined if it cannot be read, for example because the process has ended. */
function readProc(path: string, bytesMax = FILE_BYTES_MAX): string | undefined {
  try {
    const file = openSync(`/proc/${path}`, 'r');
    try {
      let length = 0;
      for (let bytes = -1; bytes !== 0 && length < bytesMax; length += bytes)
        bytes = readSync(file, readBuffer, length, bytesMax - length, null);
      return readBuffer.toString('utf8', 0, length);
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}
