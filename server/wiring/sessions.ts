// The wiring of sessions: how they are created, connected to and ended, and how those of an earlier process are
// adopted.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Forwarding } from '../domain/fleet/forwarding.ts';
import { HOST_LOST } from '../domain/fleet/lost-hosts.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { type AdoptParts, adoptSessions } from '../domain/sessions/adopt.ts';
import { AdoptionNotes } from '../domain/sessions/adoption-notes.ts';
import type { BrowserHost } from '../domain/sessions/browser-host.ts';
import { BrowserStarter } from '../domain/sessions/browser-starter.ts';
import { Creates } from '../domain/sessions/create.ts';
import { ResponseDeliveries } from '../domain/sessions/deliveries.ts';
import { Endings } from '../domain/sessions/endings.ts';
import { expireSessions, isNothingDueBefore } from '../domain/sessions/expire.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import { RecentClaims } from '../domain/sessions/recent-claims.ts';
import { SessionConnector } from '../domain/sessions/session-connector.ts';
import { SessionService } from '../domain/sessions/sessions.ts';
import { defaultLaunch } from '../domain/sessions/settings.ts';
import { Signing } from '../domain/sessions/signing.ts';
import { StartGate } from '../domain/sessions/start-gate.ts';
import { StartingSessions } from '../domain/sessions/starting.ts';
import { WarmPool } from '../domain/sessions/warm-pool.ts';
import { Watchers } from '../domain/sessions/watchers.ts';
import type { CdpEntry } from '../entry/cdp/upgrade.ts';
import { addMs } from '../kit/clock.ts';
import type { SessionId } from '../kit/ids.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Closeable } from '../kit/scope.ts';
import { REST_INTERVAL_MS, type Task } from '../kit/task.ts';
import type { Metrics } from '../metrics.ts';
import type { Admission } from './admission.ts';
import { openBrowserHost } from './browser-host.ts';
import { openCdp } from './cdp.ts';
import type { Families } from './families.ts';
import type { Family } from './family.ts';
import { openForwarding, watchLeases } from './forwarding.ts';
import type { Foundation } from './foundation.ts';
import { dueTimesOf } from './retention.ts';

const EXPIRE_TASK = 'expire';
const EXPIRE_INTERVAL_MS = 1_000;
const WARM_TASK = 'warm';
const WARM_INTERVAL_MS = 2_000;
/**
 * The delay before another warm browser is started. By then, the response to the create has been sent and its client
 * has connected, so the start delays neither.
 */
const REFILL_DELAY_MS = 150;

export interface SessionsDeps {
  readonly identity: Identity;
  readonly admission: Admission;
  readonly families: Families;
  readonly liveSessions: LiveSessions;
  readonly metrics: Metrics;
}

/** The parts that all sessions share. */
interface SharedParts extends SessionsDeps {
  readonly starting: StartingSessions;
  readonly signing: Signing;
  readonly watchers: Watchers;
  readonly endings: Endings;
  readonly connector: SessionConnector;
}

export interface OpenedSessions extends Family, Closeable {
  readonly service: SessionService;
  readonly connector: SessionConnector;
  readonly endings: Endings;
  readonly signing: Signing;
  readonly cdp: CdpEntry;
  readonly browserHost: BrowserHost;
  readonly pool: WarmPool;
  readonly gate: StartGate;
  readonly forwarding: Forwarding;
  readonly tasks: readonly Task[];
  /** Adopts or ends the sessions of an earlier process. */
  adopt(): Promise<void>;
  close(): Promise<void>;
}

export function openSessions(runtime: Runtime, foundation: Foundation, deps: SessionsDeps): OpenedSessions {
  const { clock, log, host } = runtime;
  const { config, store, trigger } = foundation;
  const { liveSessions, identity, metrics, admission, families } = deps;
  const rows = store.sessions;
  const claims = new RecentClaims(clock);
  const sharedParts = openShared(runtime, foundation, deps, claims);
  const { starting, endings, signing, connector } = sharedParts;
  const { waitingBytes } = admission;
  const isStarting = (id: SessionId): boolean => starting.ids.includes(id);
  const forwarding = openForwarding(runtime, foundation, {
    liveSessions,
    isStarting,
    admission,
    onRefusal: metrics.recordRefusal,
  });
  const cdp = openCdp(runtime, foundation, { connector, endings, identity, waitingBytes, ...families, forwarding });
  const browserHost = openBrowserHost(runtime, foundation, cdp);
  const gate = new StartGate(clock);
  const pool = new WarmPool({
    gate,
    ...{ size: config.warm, defaultSettings: defaultLaunch(config.engine), browserHost, claims, clock, log },
    ...{ starting: () => starting.size, processors: availableParallelism(), recordClaim: metrics.recordClaim },
  });
  const scheduleExpiry = (ms: number): void => trigger(EXPIRE_TASK, ms);
  const presenceParts = { rows, clock, log, graceMs: config.disconnectGraceMs, scheduleExpiry };
  const { watchers } = sharedParts;
  const browserStarter = new BrowserStarter({ ...runtime, browserHost, pool, gate, rows, presenceParts, watchers });
  const deliveries = new ResponseDeliveries({ rows, host, clock, log });
  const service = openService(runtime, foundation, sharedParts, browserStarter, deliveries);
  return {
    ...{ service, connector, endings, signing, cdp, browserHost, pool, gate, forwarding },
    tasks: [
      ...watchLeases(runtime, foundation, { endings, liveSessions, starting, warm: () => pool.size }),
      {
        ...{
          name: EXPIRE_TASK,
          everyMs: EXPIRE_INTERVAL_MS,
          restMs: REST_INTERVAL_MS,
          isAtRest: () => isNothingDueBefore(addMs(clock.now(), REST_INTERVAL_MS), { liveSessions, endings }),
        },
        run: () => expireSessions({ rows, liveSessions, endings, host, clock }),
      },
      { name: WARM_TASK, everyMs: WARM_INTERVAL_MS, run: () => pool.reconcile() },
    ],
    adopt: () => adopt(foundation, { ...runtime, rows, browserHost, browserStarter, endings, watchers }),
    recover: () => deliveries.recover(),
    close: () => pool.close(),
  };
}

function openShared(
  runtime: Runtime,
  { config, secret, store, trigger, fleet }: Foundation,
  deps: SessionsDeps,
  claims: RecentClaims,
): SharedParts {
  const { log } = runtime;
  const { liveSessions, identity, metrics, admission, families } = deps;
  const { sessions: rows, events } = store;
  const { keyUses, callers } = identity;
  const starting = new StartingSessions(() => trigger(WARM_TASK, claims.areContinuous ? 0 : REFILL_DELAY_MS));
  const signing = new Signing(secret, config.hostUrl ?? config.publicUrl);
  const allFamilies: readonly Family[] = Object.values(families);
  const watchers = new Watchers(
    allFamilies.flatMap(({ watcher }) => watcher ?? []),
    log,
  );
  const endings = new Endings({
    ...{ ...runtime, rows, watchers, liveSessions, starting, dueTimes: dueTimesOf(config) },
    isElsewhere: row => row.hostId !== runtime.host && fleet.isLiving(row.hostId),
    onEnd: row => {
      metrics.recordEnd(row);
      admission.queue.noteFreeSlot();
      admission.line.announceRoom();
    },
  });
  const connector = new SessionConnector({
    ...runtime,
    rows,
    events,
    liveSessions,
    starting,
    signing,
    keyUses,
    callers,
  });
  return { ...deps, starting, signing, watchers, endings, connector };
}

function openService(
  runtime: Runtime,
  { config, store, fleet }: Foundation,
  sharedParts: SharedParts,
  browserStarter: BrowserStarter,
  deliveries: ResponseDeliveries,
): SessionService {
  const rows = store.sessions;
  const { liveSessions, starting, endings, signing, watchers, metrics } = sharedParts;
  const { limits, queue, line } = sharedParts.admission;
  const creates = new Creates({
    ...{
      ...runtime,
      rows,
      limits,
      queue,
      liveSessions,
      starting,
      browserStarter,
      endings,
      deliveries,
      signing,
      watchers,
    },
    hasRoomElsewhere: () => fleet.hasRoomElsewhere,
    isInFleet: () => !fleet.isAlone,
    onLeftLine: () => line.announceRoom(),
    defaultRegion: config.regions[0],
    rates: config.credit.rates,
    onStarted: metrics.recordStart,
    onRefused: metrics.recordRefusal,
  });
  return new SessionService({
    rows,
    liveSessions,
    creates,
    endings,
    limits,
    signing,
    watchers,
    clock: runtime.clock,
  });
}

async function adopt(
  { config, scope, fleet }: Foundation,
  parts: Omit<AdoptParts, 'notes' | 'graceMs'>,
): Promise<void> {
  const notes = new AdoptionNotes(join(config.dataDir, 'adoptions'), parts.clock);
  const onUncaughtException = (error: unknown): void => notes.recordProcessEnd(error);
  process.on('uncaughtExceptionMonitor', onUncaughtException);
  scope.defer(() => void process.off('uncaughtExceptionMonitor', onUncaughtException));
  scope.own(notes);
  if (fleet.wasLost)
    for (const { id } of await parts.rows.ofHost(parts.host))
      await parts.rows.decideEnd(id, HOST_LOST, parts.clock.now());
  await adoptSessions({ ...parts, notes, graceMs: config.adoptGraceMs });
}
