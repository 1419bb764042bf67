// Reads /proc: who is alive, whose child is whose. A pid alone is never trusted; a Process is a pid with its start time.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Process {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks from boot to the process's start. */
  readonly startTicks: string;
}

/** More entries of /proc than this are not looked at; no machine that we serve has as many. */
const PROCESSES_MAX = 200_000;

export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

interface Stat {
  readonly state: string;
  readonly session: number;
  readonly startTicks: string;
}

/** Undefined when there is no such process, or when it is dead and only waits to be reaped. */
function stat(pid: number): Stat | undefined {
  const found = statOfAny(pid);
  return found && found.state !== 'Z' && found.state !== 'X' ? found : undefined;
}

function statOfAny(pid: number): Stat | undefined {
  const text = readProc(`${pid}/stat`);
  if (text === undefined) return undefined;
  // The command's name stands in brackets and may itself contain brackets and blanks.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, session, startTicks] = [fields[0], fields[3], fields[19]];
  if (!state || !session || !startTicks) return undefined;
  return { state, session: Number(session), startTicks };
}

/** A child that was spawned just now: it may have died already, but nobody has reaped it yet. */
export function findChild(pid: number): Process | undefined {
  const startTicks = statOfAny(pid)?.startTicks;
  return startTicks === undefined ? undefined : { pid, startTicks };
}

export function findProcess(pid: number): Process | undefined {
  const startTicks = stat(pid)?.startTicks;
  return startTicks === undefined ? undefined : { pid, startTicks };
}

export const isAlive = (process: Process): boolean => stat(process.pid)?.startTicks === process.startTicks;

/** SIGKILL, if the pid is still the same process. */
export function killProcess(victim: Process): void {
  if (!isAlive(victim)) return;
  try {
    process.kill(victim.pid, 'SIGKILL');
  } catch {
    // It went between the look and the signal.
  }
}

/** Children of the process's first thread. */
export const childrenOf = (pid: number): readonly number[] =>
  (readProc(`${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);

/** The pid that the process has in the innermost pid namespace it is in. */
export function innermostPid(pid: number): number | undefined {
  const line = /^NSpid:\t(.*)$/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  const last = line?.split(/\s+/).at(-1);
  return last === undefined ? undefined : Number(last);
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

/** Every living process of this session of processes (setsid), by the number of its leader. */
export const processesOfSession = (leader: number): readonly Process[] =>
  allPids().flatMap(pid => {
    const found = stat(pid);
    return found?.session === leader ? [{ pid, startTicks: found.startTicks }] : [];
  });

export interface Marked extends Process {
  /** What stands after `BERTH_BOX=` in the environment that it was started with. */
  readonly mark: string;
}

/** Every living process that was started with the mark in its environment, as far as we may read that. */
export const markedProcesses = (variable: string): readonly Marked[] =>
  allPids().flatMap(pid => {
    const mark = environmentOf(pid)
      .find(entry => entry.startsWith(`${variable}=`))
      ?.slice(variable.length + 1);
    const found = mark === undefined ? undefined : findProcess(pid);
    return mark === undefined || found === undefined ? [] : [{ ...found, mark }];
  });

const environmentOf = (pid: number): readonly string[] => (readProc(`${pid}/environ`) ?? '').split('\0');

const allPids = (): readonly number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .slice(0, PROCESSES_MAX)
    .map(Number);

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return undefined;
  }
}
