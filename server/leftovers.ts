// Ends the browsers and sessions that a server left behind. Refuses if a server is running, so that no session in use
// is ended.
import { join } from 'node:path';
import { type Config, processFolder, readConfig } from './config.ts';
import { completeGuids } from './domain/files/whole-files.ts';
import type { DecidedEnd } from './domain/sessions/actors.ts';
import type { SalvagedFiles } from './engines/artifacts/salvage.ts';
import { DOWNLOADS_FOLDER } from './engines/browser/policies.ts';
import { createBoxHost, jailedForm } from './engines/slots/open-slots.ts';
import type { Form, Remains } from './engines/slots/slots.ts';
import { sweep } from './engines/slots/sweep.ts';
import type { SessionRow } from './engines/store/rows/sessions.ts';
import type { Store } from './engines/store/store.ts';
import { type Clock, systemClock } from './kit/clock.ts';
import { Fault } from './kit/fault.ts';
import { listHostileFolder } from './kit/hostile-file.ts';
import { type Log, silentLog } from './kit/log.ts';
import type { Runtime } from './kit/runtime.ts';
import { runningServer } from './server-record.ts';
import { openSalvage } from './wiring/kept-files.ts';
import { numbersWithFolder } from './wiring/process-folders.ts';
import { dueTimesOf } from './wiring/retention.ts';
import { commandRuntime, openDatabase } from './wiring/runtime.ts';
import { slotOptions } from './wiring/slots.ts';

const OPERATOR_END = {
  status: 'COMPLETED',
  reason: 'operator',
  detail: 'ended by `berth stop`',
  by: { kind: 'operator' },
} as const;

const FORMER_PROCESS_END = {
  status: 'ERROR',
  reason: 'service_restart',
  detail: 'BERTH_PROCESSES was lowered, so the server process that ran the session was not started again',
} as const;

const NAMES_MAX = 1_000_000;

export interface Leftovers {
  /** Session ids of the browsers, processes and folders that were removed. */
  readonly sweptSessionIds: readonly string[];
  /** Ids of the sessions that were still open in the database and have now been ended. */
  readonly endedSessionIds: readonly string[];
}

export async function endLeftovers(
  env: Readonly<Record<string, string | undefined>>,
  log: Log = silentLog,
  clock: Clock = systemClock,
): Promise<Leftovers> {
  const config = readConfig(env);
  // The database is opened without `isBesideServer`, so that this process locks the data folder and no server can start
  // in the meantime.
  const store = await openDatabase({ clock, log }, config);
  try {
    assertNoServer(config.dataDir);
    const allLeftovers: Leftovers[] = [];
    for (const number of [1, ...numbersWithFolder(config.sharedDir)])
      allLeftovers.push(await endLeftoversOf(number, { config, store, clock, log, end: OPERATOR_END }));
    return {
      sweptSessionIds: allLeftovers.flatMap(({ sweptSessionIds: swept }) => swept),
      endedSessionIds: allLeftovers.flatMap(({ endedSessionIds: ended }) => ended),
    };
  } finally {
    await store.close();
  }
}

interface EndLeftoversDeps extends Pick<Runtime, 'clock' | 'log'> {
  readonly config: Config;
  readonly store: Store;
  readonly end: DecidedEnd;
}

/**
 * Ends the leftovers of the process with this number, which must not be running. If a server has only one process, its
 * number is 1.
 */
async function endLeftoversOf(
  number: number,
  { config, store, clock, log, end }: EndLeftoversDeps,
): Promise<Leftovers> {
  const ownConfig = { ...config, dataDir: processFolder(config.sharedDir, number) };
  const { runtime } = commandRuntime(ownConfig, clock, log);
  const rows = await store.sessions.ofHost(runtime.host);
  const sweptIds = await sweepAll(runtime, ownConfig, rows);
  await endSessions(store, rows, ownConfig, clock, end);
  return { sweptSessionIds: sweptIds, endedSessionIds: rows.map(row => row.id) };
}

/** Ends the leftovers of processes that are no longer started because the number of processes was lowered. */
export async function endFormerProcesses(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  config: Config,
  store: Store,
): Promise<void> {
  if ((config.process?.number ?? 1) > 1) return;
  const processCount = config.process?.processCount ?? 1;
  for (const number of numbersWithFolder(config.sharedDir).filter(number => number > processCount)) {
    const { sweptSessionIds: sweptIds, endedSessionIds: endedIds } = await endLeftoversOf(number, {
      config,
      store,
      clock,
      log,
      end: FORMER_PROCESS_END,
    });
    if (sweptIds.length + endedIds.length > 0)
      log.warn('processes.former_ended', { number, sessions: endedIds.length });
  }
}

function assertNoServer(dataDir: string): void {
  const server = runningServer(dataDir);
  if (server)
    throw new Fault('data_folder_in_use', `A server that uses ${dataDir} is running (process ${server.pid}).`, {
      advice: 'Stop the server first, and run the command again.',
    });
}

async function sweepAll(runtime: Runtime, config: Config, rows: readonly SessionRow[]): Promise<readonly string[]> {
  const salvage = await openSalvage(config);
  const sessionByBox = new Map(rows.map(row => [boxOf(row), row.id]));
  const removedSessionIds = new Set<string>();
  for (const form of formsOf(config.isolation)) {
    const host = createBoxHost(slotOptions(config, runtime), form);
    try {
      const moveFiles = async (box: string, { folder }: Remains): Promise<void> => {
        const session = sessionByBox.get(box);
        if (session) await salvageDownloads(salvage, session, folder);
      };
      for (const session of await sweep(host, new Set(), moveFiles)) removedSessionIds.add(session);
    } finally {
      await host.close();
    }
  }
  return [...removedSessionIds];
}

/** With `auto`, the server may have used either form of isolation. */
function formsOf(isolation: Config['isolation']): readonly Form[] {
  if (isolation === 'process') return ['process'];
  return isolation === 'slot' ? [jailedForm()] : [jailedForm(), 'process'];
}

/** The box of a claimed warm browser keeps the id that it had before the claim. */
const boxOf = ({ id, box }: SessionRow): string => (typeof box?.id === 'string' ? box.id : id);

/** Moves the complete downloads of the session out of its box. The next server stores them. */
async function salvageDownloads(salvage: SalvagedFiles, session: string, folder: string): Promise<void> {
  const names = await listHostileFolder(folder, DOWNLOADS_FOLDER, NAMES_MAX);
  await salvage.moveIn(session, join(folder, DOWNLOADS_FOLDER), completeGuids(names));
}

async function endSessions(
  store: Store,
  rows: readonly SessionRow[],
  config: Config,
  clock: Clock,
  end: DecidedEnd,
): Promise<void> {
  for (const row of rows) {
    await store.sessions.decideEnd(row.id, end, clock.now());
    const endedAt = clock.now();
    await store.sessions.finish(row.id, endedAt, row.proxyBytes, dueTimesOf(config)(endedAt));
  }
}
