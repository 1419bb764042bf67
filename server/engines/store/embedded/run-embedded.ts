// Runs the embedded PostgreSQL: finds or starts it, restarts it when it dies, and stops it at the end. The caller holds
// the data folder's lock, so no other process does the same.
import { setTimeout as timer } from 'node:timers/promises';
import { Fault, reason } from '../../../kit/fault.ts';
import type { Log } from '../../../kit/log.ts';
import type { Runtime } from '../../../kit/runtime.ts';
import type { Closeable } from '../../../kit/scope.ts';
import { withTimeout } from '../../../kit/wait.ts';
import { binariesFor, clusterFolder, clusterMajor, makeCluster } from './cluster.ts';
import { postgresIdentity } from './identity.ts';
import { isResponding, type SocketAddress } from './is-responding.ts';
import { endOrphans } from './orphans.ts';
import {
  findPostmaster,
  type LaunchOptions,
  launch,
  type Postmaster,
  StartFailed,
  stopPostmaster,
} from './postmaster.ts';
import { isClusterProcess, readPostmasterFile, replaceDeadPid } from './postmaster-file.ts';
import { lastLogLines, rotateServerLog } from './server-log.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';

export interface EmbeddedOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly dataDir: string;
  /** The folder that contains `postgres`. If absent, Berth searches for it. */
  readonly binariesFolder?: string | undefined;
  /** Whether `close` ends a postmaster that was found running. A server ends it; a command leaves it running. */
  readonly endAdoptedOnClose: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface EmbeddedPostgres extends Closeable {
  readonly address: SocketAddress;
  /** The pid of the current postmaster; it changes after a restart. */
  readonly pid: number;
}

/** How long the remaining processes of a crashed postmaster may delay a start. */
const CRASH_LEFTOVERS_TIMEOUT_MS = 10_000;
const RETRY_INTERVAL_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** A postmaster that ran longer than this is restarted at once when it ends. */
const STABLE_RUN_MIN_MS = 30_000;
const LOG_ROTATION_INTERVAL_MS = 60_000;

export async function runEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const closeController = new AbortController();
  const signal = options.signal ? AbortSignal.any([closeController.signal, options.signal]) : closeController.signal;
  const plan = await prepare(options, signal);
  const firstPostmaster = await findOrStart(plan, options, signal);
  const runningPostgres: RunningPostgres = {
    postmaster: firstPostmaster,
    plan: { ...plan, socketFolder: firstPostmaster.socketFolder },
  };
  const watchPromise = Promise.all([
    keepRunning(runningPostgres, options, closeController.signal),
    keepRotatingLog(options, closeController.signal),
  ]);
  return {
    address: firstPostmaster,
    get pid() {
      return runningPostgres.postmaster.pid;
    },
    close: async () => {
      closeController.abort();
      await watchPromise;
      if (runningPostgres.postmaster.isAdopted && !options.endAdoptedOnClose) return;
      await stopPostmaster(runningPostgres.postmaster);
      await removeSocketFolder(firstPostmaster.socketFolder);
    },
  };
}

interface RunningPostgres {
  postmaster: Postmaster;
  /** Every later postmaster is started with the same plan, because the pool keeps using the same socket path. */
  readonly plan: LaunchOptions;
}

async function prepare(options: EmbeddedOptions, signal: AbortSignal): Promise<LaunchOptions> {
  const { dataDir, log } = options;
  const binaries = await binariesFor(dataDir, options.binariesFolder);
  const identity = await postgresIdentity(dataDir);
  if (clusterMajor(dataDir) === undefined) {
    log.info('postgres.init', { version: binaries.version });
    await makeCluster(dataDir, binaries, identity, signal);
  }
  return { dataDir, binaries, identity, socketFolder: await makeSocketFolder(dataDir, identity) };
}

async function findOrStart(plan: LaunchOptions, options: EmbeddedOptions, signal: AbortSignal): Promise<Postmaster> {
  const postmaster = (await adopt(plan.dataDir, signal)) ?? (await launchAfterCrash(plan, options.log, signal));
  const fields = { pid: postmaster.pid, version: plan.binaries.version };
  options.log.info(postmaster.isAdopted ? 'postgres.adopted' : 'postgres.started', fields);
  return postmaster;
}

/** Waits until a postmaster that was found in the cluster responds. Returns undefined if it was about to end. */
async function adopt(dataDir: string, signal: AbortSignal): Promise<Postmaster | undefined> {
  const existingPostmaster = findPostmaster(dataDir);
  if (!existingPostmaster) return undefined;
  try {
    return await withTimeout(
      CRASH_LEFTOVERS_TIMEOUT_MS,
      `PostgreSQL ${existingPostmaster.pid}`,
      inner => waitUntilResponding(existingPostmaster, inner),
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    throw new Fault(
      'database_unreachable',
      `PostgreSQL (process ${existingPostmaster.pid}) is running in ${clusterFolder(dataDir)}, but does not respond.`,
      { advice: `Stop it with kill -INT ${existingPostmaster.pid}, then try again.`, cause: error },
    );
  }
}

/**
 * Waits for two successful queries in a row. If the process that started the postmaster has just died, the postmaster
 * may still respond once although it is about to be stopped.
 */
async function waitUntilResponding(candidate: Postmaster, signal: AbortSignal): Promise<Postmaster | undefined> {
  for (let responseCount = 0; candidate.isRunning(); ) {
    responseCount = (await isResponding(candidate)) ? responseCount + 1 : 0;
    if (responseCount === 2) return candidate;
    signal.throwIfAborted();
    await timer(RETRY_INTERVAL_MS);
  }
  return undefined;
}

async function launchAfterCrash(plan: LaunchOptions, log: Log, signal: AbortSignal): Promise<Postmaster> {
  try {
    return await launchWithRetries(plan, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isTemporaryFailure(error)) throw startFault(error);
  }
  log.warn('postgres.orphans_ended', { pids: endOrphans(clusterFolder(plan.dataDir)) });
  return launchWithRetries(plan, signal).catch(error => {
    signal.throwIfAborted();
    throw startFault(error);
  });
}

async function launchWithRetries(plan: LaunchOptions, signal: AbortSignal): Promise<Postmaster> {
  for (let remainingMs = CRASH_LEFTOVERS_TIMEOUT_MS; ; remainingMs -= RETRY_INTERVAL_MS) {
    replacePidIfDead(clusterFolder(plan.dataDir));
    try {
      return await launch(plan, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isTemporaryFailure(error) || remainingMs <= 0) throw error;
      await timer(RETRY_INTERVAL_MS);
    }
  }
}

const isTemporaryFailure = (error: unknown): boolean => error instanceof StartFailed && error.isTemporary;

function replacePidIfDead(cluster: string): void {
  const file = readPostmasterFile(cluster);
  if (file && !isClusterProcess(cluster, file.pid)) replaceDeadPid(cluster);
}

const startFault = (error: unknown): Fault =>
  new Fault('database_unreachable', `PostgreSQL did not start: ${reason(error)}.`, {
    advice: 'See postgres.log in the data folder for details.',
    cause: error,
  });

async function keepRunning(
  currentPostgres: RunningPostgres,
  options: EmbeddedOptions,
  closeSignal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const runStartMs = options.clock.monotonicMs();
    await Promise.race([currentPostgres.postmaster.processEnd, waitForAbort(closeSignal)]);
    if (closeSignal.aborted) return;
    if (options.clock.monotonicMs() - runStartMs > STABLE_RUN_MIN_MS) attempt = 0;
    options.log.error('postgres.died', {
      pid: currentPostgres.postmaster.pid,
      lastLines: await lastLogLines(options.dataDir),
    });
    const replacement = await startAgain(currentPostgres.plan, options, attempt, closeSignal);
    if (!replacement) return;
    currentPostgres.postmaster = replacement;
  }
}

/** Retries until a postmaster is running or `close` is called. The first attempt after a healthy run is immediate. */
async function startAgain(
  plan: LaunchOptions,
  options: EmbeddedOptions,
  firstAttempt: number,
  closeSignal: AbortSignal,
): Promise<Postmaster | undefined> {
  for (let attempt = firstAttempt; ; attempt += 1) {
    if (attempt > 0) await timer(backoffMs(attempt), undefined, { signal: closeSignal }).catch(() => undefined);
    if (closeSignal.aborted) return undefined;
    try {
      return await findOrStart(plan, options, closeSignal);
    } catch (error) {
      if (closeSignal.aborted) return undefined;
      options.log.error('postgres.restart_failed', { attempt, reason: reason(error) });
    }
  }
}

const backoffMs = (attempt: number): number => Math.min(BACKOFF_MAX_MS, RETRY_INTERVAL_MS * 2 ** Math.min(attempt, 10));

function waitForAbort(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

async function keepRotatingLog(options: EmbeddedOptions, closeSignal: AbortSignal): Promise<void> {
  while (!closeSignal.aborted) {
    await rotateServerLog(options.dataDir).catch(error =>
      options.log.warn('postgres.log_not_bounded', { reason: reason(error) }),
    );
    await timer(LOG_ROTATION_INTERVAL_MS, undefined, { signal: closeSignal, ref: false }).catch(() => undefined);
  }
}
