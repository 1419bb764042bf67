// Starts a postmaster, or finds one that is running; reports when the postmaster has ended, and stops it.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as timer } from 'node:timers/promises';
import { Fault, reason } from '../../../kit/fault.ts';
import { withTimeout } from '../../../kit/wait.ts';
import { PROGRAM_ENVIRONMENT } from '../run-program.ts';
import { clusterFolder } from './cluster.ts';
import type { Binaries } from './find-binaries.ts';
import type { PostgresIdentity } from './identity.ts';
import { isClusterProcess, type PostmasterFile, readPostmasterFile } from './postmaster-file.ts';
import { lastLogLines, openServerLog, serverLogSize } from './server-log.ts';
import { serverArguments } from './settings.ts';

export interface Postmaster {
  readonly pid: number;
  readonly socketFolder: string;
  readonly port: number;
  /** Whether the postmaster was found running and was not started by this process. */
  readonly isAdopted: boolean;
  /** Resolves when the postmaster has ended, for whatever reason. */
  readonly processEnd: Promise<void>;
  isRunning(): boolean;
}

/** Time limit for a start. A recovery reads at most max_wal_size, but the disk may be slow and shared. */
const READY_TIMEOUT_MS = 60_000;
const READY_POLL_INTERVAL_MS = 10;
const ADOPTED_POLL_INTERVAL_MS = 500;

/**
 * SIGINT is a fast shutdown, which writes a checkpoint. SIGQUIT is an immediate shutdown, which does not, so the next
 * start must recover. SIGKILL is the last step.
 */
const STOP_STEPS = [
  { signal: 'SIGINT', waitMs: 15_000 },
  { signal: 'SIGQUIT', waitMs: 6_000 },
  { signal: 'SIGKILL', waitMs: 2_000 },
] as const;

export interface LaunchOptions {
  readonly dataDir: string;
  readonly binaries: Binaries;
  readonly identity: PostgresIdentity;
  readonly socketFolder: string;
}

/** The reason why a start failed, with the last lines of PostgreSQL's log. */
export class StartFailed extends Error {
  readonly lastLines: string;

  constructor(lastLines: string) {
    super(lastLines || 'PostgreSQL ended immediately without any output');
    this.name = 'PostgresStartError';
    this.lastLines = lastLines;
  }

  /** Whether the failure may be temporary: after a crash, children of the dead postmaster may need a moment to end. */
  get isTemporary(): boolean {
    return /pre-existing shared memory block|lock file ".*" already exists|could not bind Unix address/.test(
      this.lastLines,
    );
  }
}

/** Starts a postmaster, and resolves when it responds. */
export async function launch(options: LaunchOptions, signal: AbortSignal): Promise<Postmaster> {
  const cluster = clusterFolder(options.dataDir);
  const logSizeBefore = await serverLogSize(options.dataDir);
  const child = spawnPostgres(options, cluster);
  const processHandle = {
    pid: child.pid ?? 0,
    isAdopted: false,
    processEnd: waitForExit(child),
    isRunning: () => isAlive(child),
  };
  try {
    const file = await withTimeout(
      READY_TIMEOUT_MS,
      'PostgreSQL to start',
      inner => waitUntilReady(cluster, child, inner),
      signal,
    );
    return { ...processHandle, socketFolder: file.socketFolder, port: file.port };
  } catch (error) {
    await stopPostmaster(processHandle);
    if (signal.aborted) throw error;
    throw new StartFailed((await lastLogLines(options.dataDir, logSizeBefore)) || reason(error));
  }
}

function spawnPostgres(options: LaunchOptions, cluster: string): ChildProcess {
  const serverArgs = serverArguments(cluster, options.socketFolder, options.binaries);
  const [program = '', ...args] = options.identity.wrapWithDeathSignal([
    join(options.binaries.folder, 'postgres'),
    ...serverArgs,
  ]);
  const log = openServerLog(options.dataDir);
  try {
    // PostgreSQL runs in its own process session, so that Ctrl-C does not reach it. The server stops the database last.
    return spawn(program, args, {
      cwd: '/',
      detached: true,
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', log.descriptor, log.descriptor],
    });
  } finally {
    log.close();
  }
}

const isAlive = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

function waitForExit(child: ChildProcess): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('exit', () => resolve());
  child.once('error', () => resolve());
  return promise;
}

/**
 * Waits until the postmaster is ready. Every program before `postgres` replaces itself with the next, so the child's
 * pid is the postmaster's.
 */
async function waitUntilReady(cluster: string, child: ChildProcess, signal: AbortSignal): Promise<PostmasterFile> {
  for (;;) {
    signal.throwIfAborted();
    if (!isAlive(child))
      throw new Error(
        child.signalCode
          ? `PostgreSQL was killed by ${child.signalCode} during startup`
          : `PostgreSQL exited during startup with code ${child.exitCode}`,
      );
    const file = readPostmasterFile(cluster);
    if (file?.pid === child.pid && file?.isReady) return file;
    await timer(READY_POLL_INTERVAL_MS);
  }
}

/** Returns the postmaster that is running in the cluster but was not started by this process, if any. */
export function findPostmaster(dataDir: string): Postmaster | undefined {
  const cluster = clusterFolder(dataDir);
  const file = readPostmasterFile(cluster);
  if (!file || !isClusterProcess(cluster, file.pid)) return undefined;
  const { pid, socketFolder, port } = file;
  return {
    pid,
    socketFolder,
    port,
    isAdopted: true,
    processEnd: waitUntilGone(cluster, pid),
    isRunning: () => isClusterProcess(cluster, pid),
  };
}

/**
 * Polls until an adopted postmaster, which is not a child process, has ended. The unreferenced timers do not keep this
 * process alive.
 */
async function waitUntilGone(cluster: string, pid: number): Promise<void> {
  while (isClusterProcess(cluster, pid)) await timer(ADOPTED_POLL_INTERVAL_MS, undefined, { ref: false });
}

/**
 * Stops the postmaster with increasingly forceful signals. `STOP_STEPS` has the signals and the time to wait after
 * each.
 */
export async function stopPostmaster(postmaster: Pick<Postmaster, 'pid' | 'processEnd' | 'isRunning'>): Promise<void> {
  for (const step of STOP_STEPS) {
    // Checked each time: the pid of a dead process may have been reused.
    if (!postmaster.isRunning()) return;
    sendSignal(postmaster.pid, step.signal);
    if (await endsWithin(step.waitMs, postmaster.processEnd)) return;
  }
  throw new Fault('database_unreachable', `PostgreSQL (process ${postmaster.pid}) does not stop.`, {
    advice:
      'The process hangs in the kernel, most likely because a disk does not respond. Check the disk, or restart the machine.',
  });
}

const endsWithin = (ms: number, processEnd: Promise<void>): Promise<boolean> =>
  withTimeout(ms, 'PostgreSQL to end', () => processEnd).then(
    () => true,
    () => false,
  );

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
}
