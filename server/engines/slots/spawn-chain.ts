// Spawns the chain of programs of one box, and waits until the program is running and the server has the egress
// listener.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { pollUntil, WaitExpired, withTimeout } from '../../kit/wait.ts';
import { type BoxProcesses, MARK_VARIABLE } from './box-processes.ts';
import { type Command, GATE_LINE } from './chain.ts';
import { takeListener } from './egress-listener.ts';
import { findChild, type Process } from './process-table.ts';
import { StderrTail } from './stderr-tail.ts';
import { TOOL_PATH } from './tools.ts';

/** How long it may take until the last program of the chain is running, even on a loaded machine. */
const START_TIMEOUT_MS = 10_000;
const CHECK_INTERVAL_MS = 5;
/** After a failure, how long to wait for the chain to exit, because its exit may be the cause. */
const EXIT_TIMEOUT_MS = 1000;
/** As in a shell, exit code 128 + N means "ended by signal N". */
export const SIGNAL_EXIT_BASE = 128;

/** 0 to 255. `SIGNAL_EXIT_BASE` + N if signal N ended the process. */
export type ExitCode = number;

export interface SpawnedChain {
  readonly process: ChildProcess;
  /** The spawned process, which becomes `timeout`. */
  readonly leader: Process;
  readonly whenExited: Promise<ExitCode>;
  readonly stderr: StderrTail;
  /** Starts the program of a gated chain. */
  readonly openGate: () => void;
}

/**
 * Spawns the chain in a process session (setsid) of its own, so that signals to the server's terminal or process group
 * do not reach the box.
 */
export function spawnChain({ file, args }: Command, mark: string, hasGate: boolean): SpawnedChain {
  const process = spawn(file, args, {
    detached: true,
    stdio: [hasGate ? 'pipe' : 'ignore', 'ignore', 'pipe', 'ignore', 'ignore', 'ipc'],
    // The server's own environment is not passed on, because it contains secrets.
    env: { PATH: TOOL_PATH, LANG: 'C.UTF-8', [MARK_VARIABLE]: mark },
    cwd: '/',
  });
  const whenExited = once(process, 'exit').then(([code, signal]) => exitCodeOf(code, signal));
  whenExited.catch(() => {});
  process.stdin?.on('error', () => {}); // A write fails if the chain has exited, which `whenExited` reports.
  const openGate = (): void => void process.stdin?.end(GATE_LINE);
  return {
    process,
    leader: leaderOf(process),
    whenExited,
    stderr: new StderrTail(stderrOf(process)),
    openGate,
  };
}

function leaderOf(child: ChildProcess): Process {
  const leaderProcess = child.pid === undefined ? undefined : findChild(child.pid);
  if (!leaderProcess) throw new Error('the process chain of the box could not be spawned');
  return leaderProcess;
}

function stderrOf(child: ChildProcess): Readable {
  if (!child.stderr) throw new Error('the process chain of the box was started without a pipe for standard error');
  return child.stderr;
}

function exitCodeOf(code: unknown, signal: unknown): ExitCode {
  if (typeof code === 'number') return code;
  const signalNumber = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return SIGNAL_EXIT_BASE + (signalNumber ?? 0);
}

/**
 * Resolves with the egress listener when the program is running. `loopback` is the listener of a box without a jail.
 * The program can start once `gateOpenPromise` has resolved.
 */
export async function waitUntilRunning(
  chain: SpawnedChain,
  processes: BoxProcesses,
  loopback: Server | undefined,
  gateOpenPromise: Promise<void>,
  signal: AbortSignal,
): Promise<Server> {
  const exitRejection = rejectOnExit(chain);
  const finishController = new AbortController();
  const eitherSignal = AbortSignal.any([signal, finishController.signal]);
  if (loopback) chain.process.disconnect();
  const isRunning = (): true | undefined => (processes.isRunning() ? true : undefined);
  const programStartPromise = gateOpenPromise.then(() =>
    pollUntil(START_TIMEOUT_MS, 'the program of a box to run', isRunning, CHECK_INTERVAL_MS, eitherSignal),
  );
  const listenerPromise = loopback ? Promise.resolve(loopback) : takeListener(chain.process, eitherSignal);
  try {
    const [egress] = await Promise.race([Promise.all([listenerPromise, programStartPromise]), exitRejection]);
    return egress;
  } catch (error) {
    listenerPromise.then(egress => egress.close()).catch(() => {});
    if (!signal.aborted) await rethrowExit(exitRejection);
    throw error;
  } finally {
    finishController.abort();
  }
}

/**
 * Throws the chain's exit error if the chain exits within EXIT_TIMEOUT_MS. The exit may be the cause of the failure,
 * even if the failure was detected first.
 */
const rethrowExit = (exitPromise: Promise<never>): Promise<void> =>
  withTimeout(EXIT_TIMEOUT_MS, 'the chain to exit', () => exitPromise).catch(error => {
    if (!(error instanceof WaitExpired)) throw error;
  });

async function rejectOnExit({ whenExited, stderr }: SpawnedChain): Promise<never> {
  const code = await whenExited;
  await stderr.whenClosed();
  throw new Error(
    `the process chain of the box exited with code ${code} during startup; standard error: ${stderr.text() || 'empty'}`,
  );
}
