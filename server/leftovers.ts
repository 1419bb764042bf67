// Ends what a server left running when it went: browsers without a server, and the sessions that they were. Only where
// no server runs, so that nobody's sessions are ended under him.
import { type Config, readConfig } from './config.ts';
import { jailedForm, layGround } from './engines/slots/open-slots.ts';
import type { Form } from './engines/slots/slots.ts';
import { sweep } from './engines/slots/sweep.ts';
import { openStore } from './engines/store/open-store.ts';
import type { Store } from './engines/store/store.ts';
import { readInstallation } from './installation.ts';
import { type Clock, systemClock } from './kit/clock.ts';
import { Fault } from './kit/fault.ts';
import { type Log, silentLog } from './kit/log.ts';
import { isLoopback } from './loopback.ts';
import { runningServer } from './server-record.ts';

const END = {
  status: 'COMPLETED',
  reason: 'operator',
  detail: 'ended by `berth stop`',
  by: { kind: 'operator' },
} as const;

export interface Leftovers {
  /** Session ids of the browsers, processes and folders that were removed. */
  readonly swept: readonly string[];
  /** Sessions that were still open in the database. */
  readonly ended: readonly string[];
}

export async function endLeftovers(
  env: Readonly<Record<string, string | undefined>>,
  log: Log = silentLog,
  clock: Clock = systemClock,
): Promise<Leftovers> {
  const config = readConfig(env);
  const { databaseUrl, dataDir } = config;
  // Not `beside`: this takes the data folder for itself, so that no server can start in the middle.
  const store = await openStore({ ...(databaseUrl ? { databaseUrl } : {}), dataDir, log, clock });
  try {
    refuseBesideServer(dataDir);
    const swept = await sweepAll(config, log, clock);
    return { swept, ended: await endSessions(store, config, clock) };
  } finally {
    await store.close();
  }
}

function refuseBesideServer(dataDir: string): void {
  const server = runningServer(dataDir);
  if (server)
    throw new Fault('data_folder_in_use', `A server runs in ${dataDir} (process ${server.pid}).`, {
      advice: 'Stop it first.',
    });
}

async function sweepAll(config: Config, log: Log, clock: Clock): Promise<readonly string[]> {
  const swept = new Set<string>();
  for (const form of formsOf(config.isolation)) {
    const ground = layGround(groundWish(config, log, clock), form);
    try {
      for (const session of await sweep(ground, new Set())) swept.add(session);
    } finally {
      ground.cgroups.close();
    }
  }
  return [...swept];
}

/** With `auto` the server may have run browsers in either way. */
function formsOf(isolation: Config['isolation']): readonly Form[] {
  if (isolation === 'process') return ['process'];
  return isolation === 'slot' ? [jailedForm()] : [jailedForm(), 'process'];
}

const groundWish = (config: Config, log: Log, clock: Clock): Parameters<typeof layGround>[0] => ({
  dataDir: config.dataDir,
  size: config.slots,
  isolation: config.isolation,
  limits: config.limits,
  listenIsLoopback: isLoopback(config.listen.host),
  log,
  clock,
});

async function endSessions(store: Store, config: Config, clock: Clock): Promise<string[]> {
  const rows = await store.sessions.ofHost(readInstallation(config, clock).host);
  for (const row of rows) {
    await store.sessions.decideEnd(row.id, END, clock.now());
    await store.sessions.finish(row.id, clock.now(), row.proxyBytes);
  }
  return rows.map(row => row.id);
}
