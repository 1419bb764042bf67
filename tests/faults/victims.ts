// Finds the processes of one server under test in /proc: those of a box by the mark in their environment, PostgreSQL by
// the data folder in its command line. Processes are killed by pid, immediately after the check.
import { readdirSync, readFileSync } from 'node:fs';
import { installIdOf } from '../harness/leftovers.ts';
import type { TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** The processes of a box, outermost first. */
export interface BoxProcesses {
  /** `timeout`, the process whose pid is in the row. */
  readonly leader: number;
  /** `bwrap` is the bubblewrap outside the jail. `init` is the one that is pid 1 inside it. */
  readonly bwrap: number;
  readonly init: number;
  /** Chromium's main process. */
  readonly browser: number;
  readonly renderers: readonly number[];
  readonly gpu: number | undefined;
  readonly network: number | undefined;
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly command: string;
}

/** Finds the processes of the session's box. Throws if one is missing. */
export function boxProcessesOf(server: TestServer, session: string): BoxProcesses {
  const mark = `BERTH_BOX=${installIdOf(server.dataDir)}/${server.boxOf(session) ?? session}`;
  const all = listProcesses();
  const leader = all.find(({ pid, name }) => name === 'timeout' && environmentOf(pid).includes(mark));
  const [bwrap] = childrenOf(all, leader);
  const [init] = childrenOf(all, bwrap);
  const browser = childrenOf(all, init).find(({ command }) => command.includes('--user-data-dir=') && !typeOf(command));
  if (!leader || !bwrap || !init || !browser)
    throw new Error(`a process of the box of session ${session} was not found`);
  const descendants = descendantsOf(all, browser);
  const pidsOfType = (type: string) =>
    descendants.filter(({ command }) => typeOf(command) === type).map(({ pid }) => pid);
  const network = descendants.find(({ command }) => command.includes('--utility-sub-type=network.'));
  return {
    leader: leader.pid,
    bwrap: bwrap.pid,
    init: init.pid,
    browser: browser.pid,
    renderers: pidsOfType('renderer'),
    gpu: pidsOfType('gpu-process')[0],
    network: network?.pid,
  };
}

export interface PostgresProcesses {
  readonly postmaster: number;
  /** The backends that serve connections. */
  readonly backends: readonly number[];
  /** Changes when the postmaster has ended all other processes and started them again. */
  readonly checkpointer: number | undefined;
}

/** The PostgreSQL processes of the server's data folder. */
export function postgresOf(server: TestServer): PostgresProcesses | undefined {
  const all = listProcesses();
  const postmaster = all.find(({ command }) => command.includes(`/postgres -D ${server.dataDir}/`));
  if (!postmaster) return undefined;
  const children = childrenOf(all, postmaster);
  const backends = children.filter(({ command }) => command.includes('[local]')).map(({ pid }) => pid);
  const checkpointer = children.find(({ command }) => command.includes('checkpointer'))?.pid;
  return { postmaster: postmaster.pid, backends, checkpointer };
}

/** Children of the server other than its database, including zombies. */
export function childrenOfServer(server: TestServer): ReadonlyArray<{ pid: number; name: string; state: string }> {
  const postmaster = postgresOf(server)?.postmaster;
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== postmaster)
    .flatMap(name => {
      const found = stat(Number(name));
      return found?.parent === server.pid ? [{ pid: Number(name), name: found.name, state: found.state }] : [];
    });
}

export const kill = (pid: number, signal: NodeJS.Signals = 'SIGKILL'): void => void process.kill(pid, signal);

export const isGone = (pid: number): boolean => /^(Z|X)?$/.test(stat(pid)?.state ?? '');

export const waitUntilGone = (pid: number): Promise<boolean> => eventually(`process ${pid} to end`, () => isGone(pid));

function listProcesses(): Process[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      const found = stat(Number(name));
      const command = read(`/proc/${name}/cmdline`)?.replaceAll('\0', ' ');
      return found && command ? [{ pid: Number(name), parent: found.parent, name: found.name, command }] : [];
    });
}

const childrenOf = (all: readonly Process[], parent: Process | undefined): readonly Process[] =>
  parent ? all.filter(each => each.parent === parent.pid) : [];

const descendantsOf = (all: readonly Process[], ancestor: Process): readonly Process[] =>
  childrenOf(all, ancestor).flatMap(child => [child, ...descendantsOf(all, child)]);

const typeOf = (command: string): string | undefined => / --type=([\w-]+)/.exec(command)?.[1];

const environmentOf = (pid: number): readonly string[] => read(`/proc/${pid}/environ`)?.split('\0') ?? [];

function stat(pid: number): { name: string; state: string; parent: number } | undefined {
  const [, name, state, parentPid] = /^\d+ \((.*)\) (\S) (\d+) /s.exec(read(`/proc/${pid}/stat`) ?? '') ?? [];
  return name === undefined || state === undefined ? undefined : { name, state, parent: Number(parentPid) };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
