// Opens the parts of a server (wiring/) with its settings, in the order of startup. The scope closes them in reverse
// order.

import type { Config } from './config.ts';
import { endUsersIn } from './domain/consumers/consumer-actions.ts';
import { type FirstStart, firstStart } from './domain/identity/first-start.ts';
import { openIdentity } from './domain/identity/identity.ts';
import { stoppingFault } from './domain/sessions/create.ts';
import type { Endings } from './domain/sessions/endings.ts';
import { LiveSessions } from './domain/sessions/live.ts';
import { Tasks } from './entry/clock/tasks.ts';
import type { Clock } from './kit/clock.ts';
import type { HostId } from './kit/ids.ts';
import { lateFunction } from './kit/late.ts';
import type { Log } from './kit/log.ts';
import { loopWatch } from './kit/loop-watch.ts';
import { Scope } from './kit/scope.ts';
import { endFormerProcesses } from './leftovers.ts';
import { type MetricSources, type Metrics, measure, openMetrics } from './metrics.ts';
import { openActions } from './wiring/actions.ts';
import { type Admission, openAdmission } from './wiring/admission.ts';
import { openDriving } from './wiring/driving.ts';
import { openFamilies } from './wiring/families.ts';
import { type Family, tasksOf } from './wiring/family.ts';
import { type Foundation, openFoundation } from './wiring/foundation.ts';
import { openHost } from './wiring/host.ts';
import { openOperatorListener, openWeb } from './wiring/http.ts';
import { openInvocations } from './wiring/invocations.ts';
import { serverRuntime } from './wiring/runtime.ts';
import { type OpenedSessions, openSessions } from './wiring/sessions.ts';

/** Background tasks run less often when the process has been unused for this long. */
const QUIET_MS_MIN = 60_000;

export interface Service {
  /** The listening address. */
  readonly url: string;
  /** The URL of metrics and readiness, with the port on which the server really listens. */
  readonly operatorUrl?: string;
  readonly isolation: string;
  readonly missingFeatures: readonly string[];
  readonly firstStartResult: FirstStart;
  /**
   * `leave`: running sessions wait for the next server. `drain`: they end with the status `COMPLETED` and the reason
   * `drained`.
   */
  stop(mode: 'leave' | 'drain'): Promise<void>;
}

export async function openService(config: Config, clock: Clock, log: Log): Promise<Service> {
  const scope = new Scope();
  try {
    return await open(config, clock, log, scope);
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function open(config: Config, clock: Clock, log: Log, scope: Scope): Promise<Service> {
  const { runtime, secret } = await serverRuntime(config, clock, log, scope);
  const liveSessions = new LiveSessions();
  const isUnused = (): boolean => liveSessions.isEmpty && isQuiet();
  const tasks = new Tasks(clock, log, { isUnused, isQuiet });
  const trigger = (task: string, ms?: number): void => tasks.trigger(task, ms);
  const foundation = await openFoundation(runtime, { config, secret, scope, trigger });
  const { store, slots, audit, tallies } = foundation;
  await endFormerProcesses(runtime, config, store);
  const metrics = openMetrics();
  scope.own(watchLoop(metrics, log, isUnused));
  const identity = scope.own(await openIdentity(runtime, { store, secret, audit, tallies }));
  const admission = await openAdmission(runtime, foundation, identity.applications);
  const endings = lateEndings();
  const sharedDeps = { identity, admission, liveSessions };
  const families = await openFamilies(runtime, foundation, { ...sharedDeps, ...endings.calls });
  const sessions = openSessions(runtime, foundation, { ...sharedDeps, families, metrics });
  endings.bind(sessions.endings);
  const driving = openDriving(runtime, foundation, { signing: sessions.signing, liveSessions }, () => http.url);
  const invocations = openInvocations(runtime, foundation, {
    ...{ driving, sessions: sessions.service, files: families.invocations.files, liveSessions },
    applications: identity.applications,
    operations: families.configuredOperations,
    credentials: families.storedCredentials,
    typingPageOf: families.recordings.typingPageOf,
    ...{ handoffs: families.handoffs, memory: families.consumers.service.agentMemory },
  });
  const actions = await openActions(runtime, foundation, {
    ...{ invocations, mail: families.mail.service, applications: identity.applications, endUsers: endUsersIn(store) },
  });
  measure(metrics, {
    ...sourcesOf(foundation, admission, sessions, liveSessions, runtime.host),
    unstoredRecordings: families.recordings.unstored,
  });
  const host = openHost(runtime, foundation, { admission, sessions, liveSessions });

  await sessions.adopt();
  const allFamilies: readonly Family[] = [...Object.values(families), invocations, actions];
  for (const family of [...allFamilies, sessions]) await family.recover?.();
  const http = await openWeb(runtime, foundation, {
    ...{ identity, admission, families, sessions, host, driving, invocations, actions, metrics },
  });
  const operator = await openOperatorListener(foundation, { sessions, metrics });
  sessions.cdp.serve(http.server);
  for (const part of [foundation, identity, ...allFamilies, sessions, host])
    for (const task of tasksOf(part)) tasks.start(task);
  for (const family of allFamilies) scope.defer(() => family.close?.());
  scope.own(tasks);
  scope.own(sessions); // Closed before the tasks, so that the starts of warm browsers are aborted first.
  // Must be last. If a later step of the start failed, the token and link that are created here would never be shown.
  const startResult = await firstStart({ store, clock, ...identity });
  return {
    url: http.url,
    ...(operator ? { operatorUrl: operator.url } : {}),
    isolation: slots.form,
    missingFeatures: slots.missingFeatures,
    firstStartResult: startResult,
    stop: mode => stop(mode, { sessions, invocations, admission, foundation, recordings: families.recordings }),
  };
}

/**
 * Resolves the only circular dependency. The network and the credit families end sessions that have used up their bytes
 * or credit, and the end of a session calls these families.
 */
function lateEndings() {
  const endSession = lateFunction<Parameters<Endings['end']>, ReturnType<Endings['end']>>('endSession');
  const isEndUnwritten = lateFunction<Parameters<Endings['isUnwritten']>, boolean>('isEndUnwritten');
  return {
    calls: { endSession: endSession.call, isEndUnwritten: isEndUnwritten.call },
    bind: (endings: Endings): void => {
      endSession.bind((id, end) => endings.end(id, end));
      isEndUnwritten.bind(id => endings.isUnwritten(id));
    },
  };
}

interface StopParts {
  readonly sessions: OpenedSessions;
  readonly invocations: Family;
  readonly admission: Admission;
  readonly foundation: Pick<Foundation, 'scope' | 'fleet'>;
  readonly recordings: { storeAll(): Promise<void> };
}

/**
 * Stops the server. With `leave`, calls of operations are stopped before their sessions, so that no call mistakes its
 * closed connection for a lost browser.
 */
async function stop(
  mode: 'leave' | 'drain',
  { sessions: { service }, invocations, admission, foundation: { scope, fleet }, recordings }: StopParts,
): Promise<void> {
  await fleet.leave('away'); // Other hosts then place no sessions here, and do not end this host's sessions.
  service.stopCreating();
  admission.line.stop(stoppingFault);
  if (mode === 'drain') {
    await service.endAll({ status: 'COMPLETED', reason: 'drained' });
    await recordings.storeAll();
    await fleet.leave('left');
  } else {
    await invocations.close?.();
    await service.abandonAll();
  }
  await scope.close();
}

/** Whether nothing has been received from clients or browsers for at least `QUIET_MS_MIN`. */
const isQuiet = (): boolean => loopWatch.unusedMs >= QUIET_MS_MIN;

const watchLoop = (metrics: Metrics, log: Log, isUnused: () => boolean) =>
  loopWatch.listen({
    isUnused,
    onDelay: metrics.loop.onDelay,
    onLongTurn: turn => {
      metrics.loop.onLongTurn(turn);
      const { ms, cpuMs, markedWork: ran, underWay } = turn;
      log.warn('loop.long_turn', { ms: Math.round(ms), cpuMs: Math.round(cpuMs), ...ran, underWay });
    },
  });

const sourcesOf = (
  { config, store, slots, workers }: Foundation,
  { queue, line }: Admission,
  { pool, gate }: OpenedSessions,
  liveSessions: LiveSessions,
  host: HostId,
): Omit<MetricSources, 'unstoredRecordings'> => ({
  sessionsByStatus: () => store.sessions.countByStatus(host),
  cdpClients: () => liveSessions.all.reduce((sum, live) => sum + live.clients, 0),
  slots: config.slots,
  occupiedSlots: () => slots.usedCount,
  warmBrowsers: () => pool.size,
  warmStarting: () => pool.pending,
  startsWaiting: () => gate.waiting,
  isDemandContinuous: () => pool.isUnderPressure,
  waitingCreates: () => queue.size + line.size,
  queueCounts: () => store.queues.count(host),
  waitingJobs: () => workers.waitingJobCount,
});
