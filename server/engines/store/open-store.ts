// Opens the store: on the operator's database, or on the embedded PostgreSQL of the data folder.
import { setTimeout as timer } from 'node:timers/promises';
import { sql } from 'kysely';
import { Fault, isFault } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { Scope } from '../../kit/scope.ts';
import type { Secret } from '../../kit/secret.ts';
import { withTimeout } from '../../kit/wait.ts';
import { Announcer } from './announcer.ts';
import { confine } from './confine.ts';
import { lockDataFolder, readOwner } from './data-folder.ts';
import { type Db, describeProblem, openDatabase, type Target, unreachableFault } from './database.ts';
import { isResponding } from './embedded/is-responding.ts';
import { findPostmaster } from './embedded/postmaster.ts';
import { runEmbedded } from './embedded/run-embedded.ts';
import { Listener } from './listener.ts';
import { assertServerSupported, migrate } from './migrate.ts';
import type { AtomicTables, Store } from './store.ts';
import { accounts } from './tables/accounts.ts';
import { actions } from './tables/actions.ts';
import { applications } from './tables/applications.ts';
import { attempts } from './tables/attempts.ts';
import { audit } from './tables/audit.ts';
import { certificates } from './tables/certificates.ts';
import { checkouts } from './tables/checkouts.ts';
import { configuredOperations } from './tables/configured-operations.ts';
import { consumerMemory } from './tables/consumer-memory.ts';
import { consumerProviders } from './tables/consumer-providers.ts';
import { consumerSessions } from './tables/consumer-sessions.ts';
import { consumerPasskeys, consumerSignIns, consumers, consumerTickets, identities } from './tables/consumers.ts';
import { contextUses } from './tables/context-uses.ts';
import { contexts } from './tables/contexts.ts';
import { controls } from './tables/controls.ts';
import { creditReads } from './tables/credit-reads.ts';
import { creditGrants, credits } from './tables/credits.ts';
import { deviceAuthorizations } from './tables/device.ts';
import { downloads } from './tables/downloads.ts';
import { egressDays } from './tables/egress-days.ts';
import { applicationEvents, events } from './tables/events.ts';
import { extensions } from './tables/extensions.ts';
import { handoffs } from './tables/handoffs.ts';
import { hosts } from './tables/hosts.ts';
import { humanSessions } from './tables/human-sessions.ts';
import { idempotency } from './tables/idempotency.ts';
import { inbox } from './tables/inbox.ts';
import { invitations } from './tables/invitations.ts';
import { invocations } from './tables/invocations.ts';
import { keys } from './tables/keys.ts';
import { limits } from './tables/limits.ts';
import { line } from './tables/line.ts';
import { logs } from './tables/logs.ts';
import { mails } from './tables/mails.ts';
import { members } from './tables/members.ts';
import { outbox } from './tables/outbox.ts';
import { pages } from './tables/pages.ts';
import { passkeys } from './tables/passkeys.ts';
import { queues } from './tables/queues.ts';
import { Recorder } from './tables/recorder.ts';
import { recordings } from './tables/recordings.ts';
import { requestRates } from './tables/request-rates.ts';
import { retention } from './tables/retention.ts';
import { sessions } from './tables/sessions.ts';
import { signInTickets } from './tables/sign-in-tickets.ts';
import { signingKeys } from './tables/signing-keys.ts';
import { storedBytes } from './tables/stored-bytes.ts';
import { storedCredentials } from './tables/stored-credentials.ts';
import { tokens } from './tables/tokens.ts';
import { uploads } from './tables/uploads.ts';
import { usage } from './tables/usage.ts';
import { usageHours } from './tables/usage-hours.ts';
import { dataKeys } from './tables/vault.ts';
import { webhooks } from './tables/webhooks.ts';

export interface StoreOptions extends Pick<Runtime, 'clock' | 'log'> {
  /** The URL of the operator's database. If absent, the embedded PostgreSQL of the data folder is used. */
  readonly databaseUrl?: Secret;
  /**
   * Whether the URL comes from the supervisor of several processes. It may then point to the embedded PostgreSQL that
   * the supervisor runs.
   */
  readonly isSupervised?: boolean;
  readonly dataDir: string;
  /** Aborts the opening. Has no effect once the store is open. */
  readonly signal?: AbortSignal;
  /**
   * Whether a command opens the store while a server may be running. A PostgreSQL that is already running is not
   * stopped.
   */
  readonly isBesideServer?: boolean;
  /** The folder that contains `postgres` and `initdb`. If absent, Berth searches for them. */
  readonly binariesFolder?: string;
  readonly lockWaitMs?: number;
}

const LOCK_WAIT_MAX_MS = 10_000;
const LOCK_POLL_INTERVAL_MS = 50;
/** How long to wait for the database. The operator's database may still be starting. */
const DATABASE_WAIT_MAX_MS = 10_000;
const DATABASE_POLL_INTERVAL_MS = 250;
const PING_TIMEOUT_MS = 2_000;

export async function openStore(options: StoreOptions): Promise<Store> {
  const scope = new Scope();
  try {
    const target = await openTarget(options, scope);
    await waitUntilReachable(target, options);
    await migrate(target, options.log);
    const role = await confine(target, options.log);
    options.signal?.throwIfAborted();
    return createStore(target, role, options, scope);
  } catch (error) {
    await scope.close();
    throw error;
  }
}

export async function openTarget(options: StoreOptions, scope: Scope): Promise<Target> {
  if (options.databaseUrl) return { url: requireValidUrl(options.databaseUrl) };
  const runningTarget = options.isBesideServer
    ? await findServerOrTakeLock(options, scope)
    : await takeLock(options, scope);
  if (runningTarget) return runningTarget;
  const embeddedPostgres = scope.own(await runEmbedded({ ...options, endAdoptedOnClose: !options.isBesideServer }));
  return { socket: embeddedPostgres.address };
}

/** Checked here, because the error of a later parser would contain the password. */
function requireValidUrl(url: Secret): Secret {
  if (URL.canParse(url.reveal())) return url;
  throw new Fault('database_unreachable', 'DATABASE_URL is not a valid URL.', {
    advice: 'Expected: postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters percent-encoded.',
  });
}

async function takeLock(
  { dataDir, lockWaitMs = LOCK_WAIT_MAX_MS, signal }: StoreOptions,
  scope: Scope,
): Promise<undefined> {
  scope.own(await lockDataFolder(dataDir, { waitMs: lockWaitMs, signal }));
}

/**
 * A command uses the PostgreSQL of a running server. The PostgreSQL of another command may end at any moment, so this
 * command waits for the lock and starts its own PostgreSQL.
 */
async function findServerOrTakeLock(options: StoreOptions, scope: Scope): Promise<Target | undefined> {
  const { dataDir, lockWaitMs = LOCK_WAIT_MAX_MS, signal } = options;
  for (let remainingMs = lockWaitMs; ; remainingMs -= LOCK_POLL_INTERVAL_MS) {
    try {
      scope.own(await lockDataFolder(dataDir, { waitMs: 0, role: 'command', signal }));
      return undefined;
    } catch (error) {
      if (!isFault(error, 'data_folder_in_use')) throw error;
      const serverTarget = await findServerTarget(dataDir);
      if (serverTarget) return serverTarget;
      if (remainingMs <= 0) throw error;
    }
    await timer(LOCK_POLL_INTERVAL_MS, undefined, signal ? { signal } : {});
  }
}

async function findServerTarget(dataDir: string): Promise<Target | undefined> {
  if (readOwner(dataDir)?.role !== 'server') return undefined;
  const serverPostmaster = findPostmaster(dataDir);
  return serverPostmaster && (await isResponding(serverPostmaster)) ? { socket: serverPostmaster } : undefined;
}

/** Waits until the database responds. The embedded database already responds; the operator's may still be starting. */
async function waitUntilReachable(target: Target, { log, signal, isSupervised = false }: StoreOptions): Promise<void> {
  const isOperatorServer = 'url' in target && !isSupervised;
  for (let remainingMs = DATABASE_WAIT_MAX_MS; ; remainingMs -= DATABASE_POLL_INTERVAL_MS) {
    const problem = await findProblem(target, isOperatorServer, log);
    if (!problem) return;
    if (remainingMs <= 0 || !mayBeTemporary(problem)) throw unreachableDatabaseFault(problem);
    await timer(DATABASE_POLL_INTERVAL_MS, undefined, signal ? { signal } : {});
  }
}

async function findProblem(target: Target, isOperatorServer: boolean, log: Log): Promise<unknown> {
  const database = openDatabase(target, log, { poolMax: 1 });
  try {
    await assertServerSupported(database.db, isOperatorServer);
    return undefined;
  } catch (error) {
    if (isFault(error, 'database_unreachable')) return error.cause;
    throw error;
  } finally {
    await database.close();
  }
}

/**
 * Whether the problem may be temporary: the database is not reachable, is starting or shutting down, or has no free
 * connection. A wrong password or database name is not retried.
 */
const mayBeTemporary = (problem: unknown): boolean =>
  problem instanceof Error &&
  'code' in problem &&
  /^(ECONNREFUSED|ECONNRESET|ENOENT|EAI_AGAIN|ENOTFOUND|57P0\d|53300)$/.test(String(problem.code));

const unreachableDatabaseFault = (problem: unknown): Fault =>
  new Fault('database_unreachable', `The database cannot be reached: ${describeProblem(problem)}.`, {
    advice:
      'Check DATABASE_URL, and check that the database server is running and accepts connections from this machine.',
    cause: problem,
  });

function createStore(target: Target, role: string | undefined, { log, clock }: StoreOptions, scope: Scope): Store {
  const { db } = scope.own(openDatabase(target, log, role === undefined ? {} : { role }));
  const listener = scope.own(new Listener(target, log));
  const announcer = new Announcer(db, log);
  return {
    ...atomicTables(db, announcer),
    accounts: accounts(db),
    atomically: work => db.transaction().execute(trx => work(atomicTables(trx, announcer))),
    passkeys: passkeys(db),
    consumerPasskeys: consumerPasskeys(db),
    consumerTickets: consumerTickets(db),
    line: line(db),
    requestRates: requestRates(db),
    attempts: attempts(db),
    hosts: hosts(db),
    sessions: sessions(db, clock, new Recorder(db, announcer)),
    egressDays: egressDays(db),
    usage: usage(db),
    usageHours: usageHours(db),
    idempotency: idempotency(db),
    events: events(db, announcer),
    contexts: contexts(db, announcer),
    contextUses: contextUses(db, announcer),
    checkouts: checkouts(db),
    credits: { ...credits(db, announcer), ...creditReads(db), ...creditGrants(db) },
    mails: mails(db),
    inbox: inbox(db),
    outbox: outbox(db),
    queues: queues(db),
    uploads: uploads(db),
    downloads: downloads(db, announcer),
    storedBytes: storedBytes(db),
    retention: retention(db),
    certificates: certificates(db),
    recordings: recordings(db, announcer),
    extensions: extensions(db),
    logs: logs(db),
    pages: pages(db),
    vault: dataKeys(db),
    signingKeys: signingKeys(db),
    isConfined: role !== undefined,
    ping: () => ping(db),
    listen: (channel, onNotification, onGap) => listener.listen(channel, onNotification, onGap),
    close: () => scope.close(),
  };
}

const atomicTables = (db: Db, announcer: Announcer): AtomicTables => ({
  accounts: accounts(db),
  signInTickets: signInTickets(db),
  applications: applications(db),
  members: members(db),
  invitations: invitations(db),
  tokens: tokens(db),
  keys: keys(db),
  humanSessions: humanSessions(db),
  identities: identities(db),
  consumers: consumers(db),
  consumerMemory: consumerMemory(db),
  consumerProviders: consumerProviders(db),
  consumerSessions: consumerSessions(db),
  consumerSignIns: consumerSignIns(db),
  device: deviceAuthorizations(db),
  limits: limits(db),
  webhooks: webhooks(db),
  controls: controls(db),
  handoffs: handoffs(db),
  configuredOperations: configuredOperations(db),
  storedCredentials: storedCredentials(db),
  actions: actions(db),
  invocations: invocations(db, announcer),
  audit: audit(db),
  mails: mails(db),
  inbox: inbox(db),
  applicationEvents: applicationEvents(db, announcer),
  credits: creditGrants(db),
  checkouts: checkouts(db),
});

async function ping(db: Db): Promise<void> {
  try {
    await withTimeout(PING_TIMEOUT_MS, 'the database', () => sql`select 1`.execute(db));
  } catch (error) {
    throw isFault(error) ? error : unreachableFault(error);
  }
}
