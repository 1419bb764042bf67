// Several processes of one installation on one machine, each a host with sessions of its own, behind one address. The
// supervisor owns the socket on which they accept connections, runs the embedded database, and restarts any process
// that has ended; the sessions of that process continue.
import cluster from 'node:cluster';
import type { Config } from '../config.ts';
import { lockDataFolder } from '../engines/store/data-folder.ts';
import type { SocketAddress } from '../engines/store/embedded/is-responding.ts';
import { openTarget } from '../engines/store/open-store.ts';
import { readInstallation } from '../installation.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';
import { Scope } from '../kit/scope.ts';
import { removeServerRecord, writeServerRecord } from '../server-record.ts';
import { makeFolders } from './process-folders.ts';
import { type StopSignal, SupervisedProcess } from './supervised.ts';

const FOLDER_LOCK_TIMEOUT_MS = 10_000;

export interface SuperviseParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly whenStopRequested: Promise<StopSignal>;
}

/** Runs until `whenStopRequested` resolves, or until a process fails to start. Returns the exit code. */
export async function runProcesses({ config, clock, log, whenStopRequested }: SuperviseParts): Promise<number> {
  // Each process accepts connections from the common socket itself. A connection that the supervisor handed over in a
  // message would be lost if the process were killed before it read the message.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const scope = new Scope();
  try {
    const env = await openSharedResources(config, clock, log, scope);
    const processCount = config.processes;
    const onRestart = (number: number): void => {
      for (const one of supervisedProcesses) one.sendRestart(number, clock.now());
    };
    const numbers = Array.from({ length: processCount }, (_, at) => at + 1);
    const supervisedProcesses: readonly SupervisedProcess[] = numbers.map(
      number => new SupervisedProcess({ position: { number, processCount }, env, clock, log, onEnded: onRestart }),
    );
    const stop = (signal: StopSignal): void => {
      for (const one of supervisedProcesses) one.stop(signal);
    };
    void whenStopRequested.then(stop);
    const [firstProcess, ...otherProcesses] = supervisedProcesses;
    // The first process is started before the others, because it creates the tables and the first account.
    const addresses = await firstProcess?.start();
    const allAddresses = addresses ? await Promise.all(otherProcesses.map(one => one.start())) : [addresses];
    if (addresses && !allAddresses.includes(undefined)) writeServerRecord(config.dataDir, addresses);
    else stop('SIGTERM');
    const exitCodes = await Promise.all(supervisedProcesses.map(one => one.whenEnded));
    removeServerRecord(config.dataDir);
    return Math.max(...exitCodes);
  } finally {
    await scope.close();
  }
}

/** Opens the resources that the processes share. Returns the environment variables to set for them. */
async function openSharedResources(
  config: Config,
  clock: Clock,
  log: Log,
  scope: Scope,
): Promise<Readonly<Record<string, string>>> {
  const { databaseUrl, dataDir } = config;
  readInstallation(config, clock); // Creates the secret now. Otherwise, two processes could each create one.
  if (databaseUrl) {
    scope.own(await lockDataFolder(dataDir, { waitMs: FOLDER_LOCK_TIMEOUT_MS }));
    makeFolders(config);
    return {};
  }
  const target = await openTarget({ dataDir, clock, log }, scope);
  makeFolders(config);
  if (!('socket' in target)) throw new Error('the embedded database has no socket');
  return { DATABASE_URL: urlOf(target.socket) };
}

function urlOf({ socketFolder, port }: SocketAddress): string {
  const query = new URLSearchParams({ host: socketFolder, port: String(port), user: 'postgres' });
  return `postgres:///postgres?${query}`;
}
