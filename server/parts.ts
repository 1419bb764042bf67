// Knows which implementation is used for what, with the other files beside it. Reads top to bottom as the order of starting; the
// scope closes everything in reverse.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { WAITING_MAX } from '../contract/limits.ts';
import { TIMEOUT_MAX_SECONDS } from '../contract/sessions.ts';
import type { Config } from './config.ts';
import { Certificates } from './domain/certificates/certificates.ts';
import { trustWatcher } from './domain/certificates/trust.ts';
import { EventService } from './domain/events/events.ts';
import { Links } from './domain/files/links.ts';
import { forgetEnded } from './domain/forget-ended.ts';
import { Idempotency } from './domain/idempotency/idempotency.ts';
import { clientAddress } from './domain/identity/client-address.ts';
import { type FirstStart, firstStart } from './domain/identity/first-start.ts';
import { type Identity, openIdentity } from './domain/identity/identity.ts';
import { Limits } from './domain/limits/limits.ts';
import { AdmissionQueue } from './domain/limits/queue.ts';
import { WaitingBytes } from './domain/limits/waiting-bytes.ts';
import { openLogs } from './domain/logs/open-logs.ts';
import { Network } from './domain/network/network.ts';
import { RECORDING_OBJECT } from './domain/recordings/addresses.ts';
import { adoptSessions } from './domain/sessions/adopt.ts';
import { AdoptionNotes } from './domain/sessions/adoption-notes.ts';
import { BringUp } from './domain/sessions/bring-up.ts';
import type { BrowserHost } from './domain/sessions/browser-host.ts';
import { Connect, type Presented } from './domain/sessions/connect.ts';
import { Creates, type PlacedSession } from './domain/sessions/create.ts';
import { Deliveries } from './domain/sessions/deliveries.ts';
import { Endings } from './domain/sessions/endings.ts';
import { expireSessions } from './domain/sessions/expire.ts';
import { LiveSessions } from './domain/sessions/live.ts';
import { PageNumbers } from './domain/sessions/page-numbers.ts';
import { SessionService } from './domain/sessions/sessions.ts';
import { Signing } from './domain/sessions/signing.ts';
import { Starting } from './domain/sessions/starting.ts';
import { WarmPool } from './domain/sessions/warm-pool.ts';
import { Watchers } from './domain/sessions/watchers.ts';
import { Browser } from './engines/browser/browser.ts';
import { READ_ENVELOPE } from './engines/browser/envelope-job.ts';
import { LocaleFolders } from './engines/browser/locales.ts';
import { PolicyFolders } from './engines/browser/policies.ts';
import { switches } from './engines/browser/switches.ts';
import { openEgress } from './engines/egress/egress.ts';
import { closedPolicy } from './engines/egress/policy.ts';
import { createResolver } from './engines/egress/resolve.ts';
import { editionOf, findChromium } from './engines/slots/chromium.ts';
import { openSlots } from './engines/slots/open-slots.ts';
import type { BoxLayout, DiskRoom, Program, Slots } from './engines/slots/slots.ts';
import { lockDataFolder } from './engines/store/data-folder.ts';
import { openStore } from './engines/store/open-store.ts';
import type { Store } from './engines/store/store.ts';
import { CdpEntry } from './entry/cdp/upgrade.ts';
import { type Task, Tasks } from './entry/clock/tasks.ts';
import { openHttp } from './entry/http/server.ts';
import { readInstallation } from './installation.ts';
import type { Clock } from './kit/clock.ts';
import type { SessionId } from './kit/ids.ts';
import type { Log } from './kit/log.ts';
import { loopWatch } from './kit/loop-watch.ts';
import { Scope } from './kit/scope.ts';
import { Seal } from './kit/seal.ts';
import { noTracer, Tracer } from './kit/trace.ts';
import { wholeBufferOf } from './kit/whole-buffer.ts';
import { WorkerPool } from './kit/worker-pool.ts';
import { isLoopback } from './loopback.ts';
import { openMetrics } from './metrics.ts';
import { openContexts } from './wiring/contexts.ts';
import { openFrontEnd } from './wiring/devtools.ts';
import { openExtensions } from './wiring/extensions.ts';
import { dueTimesOf, openFiles, openKept } from './wiring/files.ts';
import { openLive } from './wiring/live.ts';
import { openNetworkEngine } from './wiring/network.ts';
import { openRecordings } from './wiring/recordings.ts';

/** What tools/build-web.ts has built. */
const WEB_FOLDER = join(import.meta.dirname, '../.berth/web');
const EXPIRE_MS = 1_000;
const WARM_MS = 2_000;
/** The create that took a warm browser has answered by then, and its client has connected: starting another is in nobody's way. */
const REFILL_AFTER_MS = 150;
const SWEEP_KEYS_MS = 60_000;
const FORGET_MS = 3_600_000;
const FOLDER_WAIT_MS = 10_000;
const MIB = 1024 ** 2;
/** Chromium's outside hard limit: the longest session, and time for the server to end it properly. */
const LIFETIME_MS = TIMEOUT_MAX_SECONDS * 1000 + 120_000;

export interface Service {
  /** The address listened on. */
  readonly url: string;
  readonly isolation: string;
  readonly missing: readonly string[];
  readonly first: FirstStart;
  /** `leave`: running sessions wait for a successor. `drain`: they end as COMPLETED / drained. */
  stop(how: 'leave' | 'drain'): Promise<void>;
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
  const { dataDir, databaseUrl } = config;
  const { host, secret } = readInstallation(config, clock);
  const trace = await openTracer(config, host, clock, log, scope);
  // The embedded database takes the folder for itself; with another one it is taken here: one server a folder.
  if (databaseUrl) scope.own(await lockDataFolder(dataDir, { waitMs: FOLDER_WAIT_MS }));
  const store = scope.own(await openStore({ ...(databaseUrl ? { databaseUrl } : {}), dataDir, log, clock }));
  const slots = scope.own(await openSlots(slotsWish(config, clock, log)));
  await store.hosts.announce({ id: host, region: config.regions[0], slots: config.slots, startedAt: clock.now() });
  const identity = scope.own(await openIdentity({ store, clock, log, secret }));

  const tasks = new Tasks(clock, log);
  const lookIn = (task: Task, ms: number): void => tasks.lookIn(task, ms);
  const kept = await openKept({ config, store, host, clock, log, scope, lookIn });

  const lives = new LiveSessions();
  const waiting = new WaitingBytes();
  const starting = new Starting(() => tasks.lookIn(warm, REFILL_AFTER_MS));
  const signing = new Signing(secret, config.publicUrl);
  const rows = store.sessions;
  const metrics = openMetrics({
    sessionsByStatus: () => rows.countByStatus(host),
    clients: () => lives.all.reduce((sum, live) => sum + live.clients, 0),
    slots: config.slots,
    boxes: () => slots.taken,
    warm: () => pool.size,
    waiting: () => queue.size,
  });
  scope.own(
    loopWatch.listen({
      delayed: metrics.loop.delayed,
      longTurn: turn => {
        metrics.loop.longTurn(turn);
        const { ms, cpuMs, ran, underWay } = turn;
        log.warn('loop.long_turn', { ms: Math.round(ms), cpuMs: Math.round(cpuMs), ...ran, underWay });
      },
    }),
  );
  const queue = new AdmissionQueue<PlacedSession>(clock);
  const limits = new Limits({
    store,
    applications: identity.applications,
    ceiling: { maxConcurrent: config.slots, maxTimeout: TIMEOUT_MAX_SECONDS, maxWaiting: WAITING_MAX },
    waitingOf: application => queue.waitingOf(application),
    changed: () => queue.freed(),
    clock,
    log,
  });
  const { artifacts } = kept;
  const links = new Links(secret, config.publicUrl, clock);
  const workers = scope.own(new WorkerPool());
  const contexts = openContexts({ config, store, artifacts, slots, workers, host, secret, clock, log, lookIn });
  const pages = new PageNumbers({ rows: store.pages, clock, log });
  const logs = openLogs({ store, pages, console: config.logRuntime, version: version(), clock, log });
  const recordings = await openRecordings({
    ...{ config, store, artifacts, pages, workers, host, clock, log, scope, lookIn },
    ...{ links, slots },
  });
  const files = await openFiles({
    ...{ config, store, kept, lives, limits, links, host, clock, log, lookIn },
    finders: { [RECORDING_OBJECT]: recordings.addresses.find },
    forgets: [recordings.forget],
    downloaded: (download, frame) => void live.view.offer(download, frame),
  });
  // In the order in which they attend: what guards the network comes first.
  const { extensions, ...going } = await openExtensions({
    ...{ store, artifacts, dataDir, clock, log },
    unusedDays: config.extensionDays,
    isJailed: slots.form !== 'process',
  });
  const network = new Network({
    engine: await openNetworkEngine(config, slots.form !== 'process', clock, log),
    rows,
    events: store.events,
    seal: new Seal(secret, 'proxies'),
    end: (id, end) => endings.end(id, end),
    blocked: (id, attempt) => logs.book.navigationBlocked(id, attempt),
    clock,
    log,
  });
  const live = openLive({
    ...{ config, store, lives, secret, keyUses: identity.keyUses, pictures: recordings.pictures, waiting, clock, log },
    linkTo: download => files.linkTo(download),
  });
  // In the order in which they attend: what guards the network comes first.
  const trust = trustWatcher(store.certificates);
  const watchers = new Watchers(
    [network, trust, contexts.watcher, going.watcher, recordings.watcher, logs.watcher, files.watcher, live.view],
    log,
  );
  const endings = new Endings({
    rows,
    watchers,
    lives,
    starting,
    clock,
    log,
    trace,
    onEnd: row => {
      metrics.ended(row);
      queue.freed();
    },
    dueTimes: dueTimesOf(config),
  });
  const connect = new Connect({
    ...{ rows, events: store.events, lives, starting, signing, clock, log },
    keyUses: identity.keyUses,
  });
  const cdp = new CdpEntry({
    connect,
    agentOf: request => agentOf(identity, request, config.trustedProxies),
    endSession: id => endings.end(id, { status: 'COMPLETED', reason: 'browser_closed' }),
    takeoverOf: id => live.view.takeoverOf(id),
    keyUses: identity.keyUses,
    people: live.view,
    elsewhere: (...upgrade) => live.entry.upgrade(...upgrade),
    waiting,
    readLong: (message, of) => workers.run(READ_ENVELOPE, message, { of, moved: wholeBufferOf(message) }),
    clock,
    log,
    trace,
  });

  const expire: Task = {
    name: 'expire',
    everyMs: EXPIRE_MS,
    run: () => expireSessions({ rows, lives, endings, host, clock }),
  };
  const endKeyUses: Task = { name: 'end_key_uses', everyMs: EXPIRE_MS, run: () => identity.keyUses.tend() };
  const forget: Task = {
    name: 'forget_events',
    everyMs: FORGET_MS,
    run: () => forgetEnded(clock, { forget: store.events.forget, batch: 200, batchesMax: 50 }),
  };
  const browserHost = await openBrowserHost(config, slots, cdp, clock, log, trace);
  const frontEnd = scope.own(openFrontEnd({ config, browserHost, clock, log }));
  const presence = {
    rows,
    clock,
    log,
    graceMs: config.disconnectGraceMs,
    lookIn: (ms: number) => tasks.lookIn(expire, ms),
  };
  const pool = new WarmPool({
    size: config.warm,
    browserHost,
    clock,
    log,
    busy: () => starting.size > 0,
    counted: metrics.claimed,
  });
  const warm: Task = { name: 'warm', everyMs: WARM_MS, run: () => pool.tend() };
  const bringUp = new BringUp({ browserHost, pool, rows, clock, log, trace, presence, watchers });
  const idempotency = new Idempotency({ rows: store.idempotency, host, secret, clock });
  const sweepKeys: Task = { name: 'sweep_keys', everyMs: SWEEP_KEYS_MS, run: () => idempotency.sweep() };
  const deliveries = new Deliveries({ rows, host, clock, log });
  const creates = new Creates({
    rows,
    limits,
    queue,
    lives,
    starting,
    bringUp,
    endings,
    deliveries,
    signing,
    watchers,
    host,
    defaultRegion: config.regions[0],
    clock,
    log,
    trace,
    started: metrics.started,
    refused: metrics.refused,
  });
  const sessions = new SessionService({ rows, lives, creates, endings, limits, signing, watchers, clock });

  const notes = new AdoptionNotes(join(dataDir, 'adoptions'), clock);
  const processEnds = (error: unknown): void => notes.processEnds(error);
  process.on('uncaughtExceptionMonitor', processEnds);
  scope.defer(() => void process.off('uncaughtExceptionMonitor', processEnds));
  scope.own(notes);
  await adoptSessions({
    rows,
    notes,
    browserHost,
    bringUp,
    endings,
    watchers,
    host,
    clock,
    log,
    graceMs: config.adoptGraceMs,
  });
  await recordings.recover();
  await deliveries.recover();
  await contexts.saver.recover();
  const events = await EventService.open({ events: store.events, sessions: rows, clock }, store.listen);
  const http = scope.own(
    await openHttp({
      listen: config.listen,
      publicUrl: config.publicUrl,
      compat: config.compat,
      trustedProxies: config.trustedProxies,
      regions: config.regions,
      workers,
      version: version(),
      clock,
      log,
      trace,
      identity,
      sessions,
      contexts: contexts.contexts,
      limits,
      idempotency,
      files: files.verbs,
      incomingDir: join(dataDir, 'incoming'),
      waiting,
      certificates: new Certificates({ rows: store.certificates, workers, clock }),
      extensions,
      events,
      logs: logs.service,
      recordings: recordings.service,
      discover: (id, { signingKey, ...presented }) =>
        connect.discover(id, {
          ...(signingKey === undefined ? {} : { signingKey }),
          ...(presented.authorization || presented.apiKey
            ? { agent: () => identity.callers.authenticate(presented, 'agentKey') }
            : {}),
        }),
      ready: () => readiness(store, slots, pool),
      live: live.view,
      frontEnd,
      metrics: metrics.registry,
      web: {
        folder: WEB_FOLDER,
        linkOrigins: [new URL(config.publicUrl).origin, ...(config.s3?.endpoint ? [config.s3.endpoint] : [])],
      },
    }),
  );
  scope.own(events); // Closed before the HTTP side, which waits for its answers to end.
  scope.own(logs.service);
  cdp.serve(http.server);
  tasks.start(expire);
  tasks.start(endKeyUses);
  tasks.start(warm);
  tasks.start(sweepKeys);
  tasks.start(forget);
  for (const task of recordings.tasks) tasks.start(task);
  tasks.start(contexts.task);
  scope.own(contexts.saver);
  for (const task of [...kept.tasks, ...files.tasks, going.tidy]) tasks.start(task);
  for (const task of logs.tasks) tasks.start(task);
  scope.own(tasks);
  scope.own(pool);
  // Last of all: what a start that fails has made would never be shown.
  const first = await firstStart({ store, clock, ...identity });

  return {
    url: http.url,
    isolation: slots.form,
    missing: slots.missing,
    first,
    stop: async how => {
      sessions.stopCreating();
      if (how === 'drain') await sessions.endAll({ status: 'COMPLETED', reason: 'drained' });
      else await sessions.abandonAll();
      await scope.close();
    },
  };
}

const slotsWish = (config: Config, clock: Clock, log: Log): Parameters<typeof openSlots>[0] => ({
  dataDir: config.dataDir,
  // Waiting browsers, and the one that DevTools is read out of, have places of their own: they never stand in a session's way.
  size: config.slots + 2 * config.warm + 1,
  isolation: config.isolation,
  limits: config.limits,
  ...(config.chromium ? { chromiumPath: config.chromium } : {}),
  listenIsLoopback: isLoopback(config.listen.host),
  log,
  clock,
});

/** OpenTelemetry is loaded only where spans are wanted. */
async function openTracer(config: Config, host: string, clock: Clock, log: Log, scope: Scope): Promise<Tracer> {
  if (!config.otlp) return noTracer;
  const { openOtel } = await import('./otel-trace.ts');
  return new Tracer(scope.own(openOtel({ ...config.otlp, version: version(), instance: host, clock, log })));
}

async function openBrowserHost(
  config: Config,
  slots: Slots,
  cdp: CdpEntry,
  clock: Clock,
  log: Log,
  trace: Tracer,
): Promise<BrowserHost> {
  const folder = join(config.dataDir, 'chromium');
  const policyFolders = new PolicyFolders(folder, LIFETIME_MS, clock);
  const localeFolders = new LocaleFolders(folder, LIFETIME_MS, clock);
  const executable = findChromium(config.chromium) ?? '';
  const tls = config.tls &&
    config.publicUrl.startsWith('https:') && {
      cert: readFileSync(config.tls.certFile),
      key: readFileSync(config.tls.keyFile),
    };
  const publicUrl = new URL(config.publicUrl);
  const port = Number(publicUrl.port || (publicUrl.protocol === 'https:' ? 443 : 80));
  const ownRoute = (owner: () => SessionId | undefined) => {
    const inside = createServer((_request, response) => response.writeHead(404).end());
    cdp.serve(inside, owner);
    const accept = (connection: object): void => void inside.emit('connection', connection);
    return { hostname: publicUrl.hostname, port, ...(tls ? { tls } : {}), accept };
  };
  return {
    slots,
    edition: () => editionOf(executable),
    startBox: async ({ id, launch, background, preparation = {} }, signal) => {
      const policies = await policyFolders.prepare(launch.policies);
      const locale =
        launch.locale &&
        (await localeFolders.prepare(executable, launch.locale).catch(error => {
          policies.release();
          throw error;
        }));
      const release = (): void => {
        policies.release();
        if (locale) locale.release();
      };
      const program = ({ folder, egressPort, ownSandbox }: BoxLayout): Program => ({
        executable,
        args: [...(launch.switches ?? []), ...switches({ folder, egressPort, sandbox: ownSandbox, ...launch })],
        mounts: [
          { from: policies.path, to: '/etc/chromium' },
          ...(locale ? locale.mounts : []),
          ...(preparation.mounts ?? []),
        ],
        env: { ...(locale ? locale.env : {}), ...launch.env },
      });
      const { fill } = preparation;
      const wish = { session: id, lifetimeMs: LIFETIME_MS, program, background, ...(fill ? { fill } : {}) };
      const started = slots.start(wish, signal);
      void started.then(box => box.gone).then(release, release);
      return started;
    },
    meetBrowser: (box, signal) =>
      trace.during('browser.meet', () => Browser.connect(box, log.with({ box: box.session }), signal)),
    adoptBrowser: (box, signal) => Browser.adopt(box, log.with({ box: box.session }), signal),
    openEgress: box => {
      let owner: SessionId | undefined;
      // An https address whose certificate we do not have is dialled like any other: the front proxy has it.
      const self = publicUrl.protocol === 'https:' && !tls ? {} : { self: ownRoute(() => owner) };
      const resolve = createResolver({ hosts: config.egressHosts, clock });
      const egress = openEgress({
        server: box.egress,
        policy: closedPolicy('no_session'),
        resolve,
        log: log.with({ box: box.session }),
        clock,
        ...self,
      });
      return {
        assign: session => {
          owner = session;
        },
        open: (policy, listener) => {
          egress.listen(listener);
          egress.replacePolicy(policy);
        },
        replacePolicy: policy => egress.replacePolicy(policy),
        counters: () => egress.counters(),
        close: () => egress.close(),
      };
    },
  };
}

function agentOf(identity: Identity, request: IncomingMessage, trustedProxies: readonly string[]): Presented['agent'] {
  const { authorization } = request.headers;
  const header = request.headers['x-bb-api-key'];
  const apiKey = Array.isArray(header) ? header[0] : header;
  if (!authorization && !apiKey) return undefined;
  const { remoteAddress } = request.socket;
  const ip = clientAddress({ remoteAddress, forwardedFor: request.headers['x-forwarded-for'] }, trustedProxies);
  return () => identity.callers.authenticate({ authorization, apiKey, ip }, 'agentKey');
}

async function readiness(
  store: Store,
  slots: Slots,
  pool: WarmPool,
): Promise<{ ok: boolean; checks: Array<{ name: string; ok: boolean; detail: string }> }> {
  const database = await store.ping().then(
    () => ({ name: 'database', ok: true, detail: 'answers' }),
    () => ({ name: 'database', ok: false, detail: 'does not answer' }),
  );
  const room = { name: 'slots', ok: true, detail: `form ${slots.form}` };
  const browsers = { name: 'browsers', ...pool.health };
  const disk = diskCheck(await slots.diskRoom());
  const checks = [database, room, browsers, disk];
  return { ok: checks.every(({ ok }) => ok), checks };
}

const diskCheck = ({ freeBytes, leastBytes }: DiskRoom) => ({
  name: 'disk',
  ok: freeBytes >= leastBytes,
  detail: `${Math.round(freeBytes / MIB)} MiB free; a session needs ${Math.round(leastBytes / MIB)}`,
});

export const version = (): string => {
  const file = new URL('../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return version;
};
