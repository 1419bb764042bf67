// Spawns the chain of programs of one box, and waits until it has come to its end: the program runs, the listener is ours.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { until, WaitExpired, within } from '../../kit/wait.ts';
import { type BoxProcesses, MARK_VARIABLE } from './box-processes.ts';
import { type Command, FILLED } from './chain.ts';
import { takeListener } from './egress-listener.ts';
import { findChild, type Process } from './process-table.ts';
import { StderrTail } from './stderr-tail.ts';
import { TOOL_PATH } from './tools.ts';

/** From the spawn until the last program of the chain runs; a loaded machine takes a while. */
const STANDS_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 5;
/** When a part of the chain is gone, how long until it shows that all of it is. */
const DIES_WITHIN_MS = 1000;
/** A shell's way to say "ended by signal N" is an exit code of 128 + N. */
export const SIGNALLED = 128;

/** As a shell would put it. */
export type ExitCode = number;

export interface SpawnedChain {
  readonly process: ChildProcess;
  /** The pid stays with the last program that outlives the others, `timeout`. */
  readonly leader: Process;
  readonly exited: Promise<ExitCode>;
  readonly stderr: StderrTail;
  /** Opens the gate of a gated one. */
  readonly letGo: () => void;
}

/** In a session of its own, so that what ends our terminal or our group does not end the box. */
export function spawnChain({ file, args }: Command, mark: string, gated: boolean): SpawnedChain {
  const process = spawn(file, args, {
    detached: true,
    stdio: [gated ? 'pipe' : 'ignore', 'ignore', 'pipe', 'ignore', 'ignore', 'ipc'],
    // Nothing of our own environment: it holds secrets.
    env: { PATH: TOOL_PATH, LANG: 'C.UTF-8', [MARK_VARIABLE]: mark },
    cwd: '/',
  });
  const exited = once(process, 'exit').then(([code, signal]) => exitCode(code, signal));
  exited.catch(() => {});
  process.stdin?.on('error', () => {}); // that it died is told by its end
  const letGo = (): void => void process.stdin?.end(FILLED);
  return { process, leader: leaderOf(process), exited, stderr: new StderrTail(stderrOf(process)), letGo };
}

function leaderOf(child: ChildProcess): Process {
  const found = child.pid === undefined ? undefined : findChild(child.pid);
  if (!found) throw new Error('the chain could not be spawned');
  return found;
}

function stderrOf(child: ChildProcess): Readable {
  if (!child.stderr) throw new Error('the chain has no error output');
  return child.stderr;
}

function exitCode(code: unknown, signal: unknown): ExitCode {
  if (typeof code === 'number') return code;
  const number = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return SIGNALLED + (number ?? 0);
}

/**
 * Resolves with the egress listener. `loopback` is the one of a box without a jail, which has no helper. The program can
 * run from `letGo` on.
 */
export async function untilItStands(
  chain: SpawnedChain,
  processes: BoxProcesses,
  loopback: Server | undefined,
  letGo: Promise<void>,
  signal: AbortSignal,
): Promise<Server> {
  const died = diedEarly(chain);
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  if (loopback) chain.process.disconnect();
  const stands = (): true | undefined => (processes.stands() ? true : undefined);
  const standing = letGo.then(() =>
    until(STANDS_WITHIN_MS, 'the program of a box to run', stands, LOOK_EVERY_MS, either),
  );
  const taking = loopback ? Promise.resolve(loopback) : takeListener(chain.process, either);
  try {
    const [egress] = await Promise.race([Promise.all([taking, standing]), died]);
    return egress;
  } catch (error) {
    taking.then(egress => egress.close()).catch(() => {});
    if (!signal.aborted) await preferDeath(died);
    throw error;
  } finally {
    enough.abort();
  }
}

/** That it died is the reason, whatever else failed through it; only it may show a moment later. */
const preferDeath = (died: Promise<never>): Promise<void> =>
  within(DIES_WITHIN_MS, 'the chain to die', () => died).catch(error => {
    if (!(error instanceof WaitExpired)) throw error;
  });

async function diedEarly({ exited, stderr }: SpawnedChain): Promise<never> {
  const code = await exited;
  await stderr.ended();
  throw new Error(`it ended at once with code ${code}, and said: ${stderr.text() || 'nothing'}`);
}
