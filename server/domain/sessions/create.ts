// Carries out creates: checks the request, waits for admission, places the row, starts the browser and responds. This
// file also responds to repeated creates, and finishes pending creates when the service stops.

import { catalogueEntry, isErrorCode } from '../../../contract/errors.ts';
import { type BrowserLimits, WAIT_SECONDS_MAX } from '../../../contract/limits.ts';
import { TIMEOUT_DEFAULT_SECONDS } from '../../../contract/sessions.ts';
import type { ApplicationUse } from '../../engines/store/rows/place.ts';
import type { NewSession, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { CreditRates } from '../../kit/metered-cost.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { pollUntil, WaitExpired, withTimeout } from '../../kit/wait.ts';
import { insufficientCredit } from '../credits/insufficient.ts';
import { sessionHold } from '../credits/terms.ts';
import { assertProject, fault, noFreeSlot } from '../faults.ts';
import { refusalError } from '../fleet/not-here.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { CREATES_WINDOW_MS, type Quota, quotaOf, refusalOf, termsOf } from '../limits/admission.ts';
import { configuredLimits, effectiveLimits } from '../limits/browser-limits.ts';
import type { Limits } from '../limits/limits.ts';
import type { AdmissionQueue, AttemptResult } from '../limits/queue.ts';
import { type Refusal, refusal, refusalFault, refusalFrom } from '../limits/refusals.ts';
import type { CreatedSession, CreateOptions, SessionRequest, SessionView } from './api.ts';
import { boxJsonOf } from './boot.ts';
import { BROWSER_START_TIMEOUT_MS, type BrowserStarter } from './browser-starter.ts';
import type { ResponseDeliveries, ResponseDelivery } from './deliveries.ts';
import type { Endings } from './endings.ts';
import { EXCLUSIVE_SETTINGS } from './exclusive.ts';
import type { LiveSessions } from './live.ts';
import { requireSession, viewOf } from './session.ts';
import type { Signing } from './signing.ts';
import { StartCancelled, type StartingSessions } from './starting.ts';
import type { Watchers } from './watchers.ts';

/** A session without keepAlive ends if no client connects within this time. */
const FIRST_CONNECT_TIMEOUT_MS = 300_000;
/**
 * How long a stopping service waits for pending creates. It must exit within ten seconds, and most browsers start
 * within one second.
 */
const FINISH_TIMEOUT_MS = 3_000;

const SERVICE_STOPPED_END = {
  status: 'ERROR',
  reason: 'service_restart',
  detail: 'the service stopped while the browser was starting',
} as const;

export const stoppingFault = () =>
  fault('capacity', 'The service is stopping and does not accept new sessions.', {
    advice: 'Send the request again in a few seconds.',
  });

/** A session whose row was inserted with the status PENDING. */
export interface PlacedSession {
  readonly row: SessionRow;
  readonly quota?: Quota;
}

export interface CreatesParts extends Runtime {
  readonly rows: SessionRows;
  readonly limits: Pick<Limits, 'effective'>;
  readonly queue: AdmissionQueue<PlacedSession>;
  readonly liveSessions: LiveSessions;
  readonly starting: StartingSessions;
  readonly browserStarter: BrowserStarter;
  readonly endings: Endings;
  readonly deliveries: ResponseDeliveries;
  readonly signing: Signing;
  readonly watchers: Watchers;
  /** Whether another host has a free slot. */
  readonly hasRoomElsewhere: () => boolean;
  /** Whether other hosts share the database. If so, callers of those hosts may wait for a slot of this host. */
  readonly isInFleet: () => boolean;
  /** Called when a create that waited in the queue of the fleet (fleet/line.ts) was placed. */
  readonly onLeftLine: () => void;
  readonly defaultRegion: string;
  /** The rates that are charged for sessions. */
  readonly rates: CreditRates;
  /** Called with the time from the create until the browser was running, for the metrics. */
  readonly onStarted: (row: SessionRow, seconds: number) => void;
  /** Called with each refusal, for the metrics. */
  readonly onRefused: (why: Refusal['why']) => void;
}

export class Creates {
  readonly #parts: CreatesParts;
  readonly #pendingCreates = new Set<Promise<unknown>>();
  #isStopping = false;

  constructor(parts: CreatesParts) {
    this.#parts = parts;
  }

  async create(caller: AgentCaller, request: SessionRequest, options: CreateOptions): Promise<CreatedSession> {
    if (this.#isStopping)
      throw options.line || this.#parts.hasRoomElsewhere()
        ? refusalError(refusal('host', 0, 0), stoppingFault())
        : stoppingFault();
    assertProject(caller.applicationId, request.projectId);
    const { warnings } = request;
    const undeliveredSession = options.delivery && (await this.#findUndelivered(caller, options.delivery));
    if (undeliveredSession) return { session: undeliveredSession, warnings, waitedMs: 0 };
    const pendingCreate = this.#run(caller, request, options);
    this.#pendingCreates.add(pendingCreate);
    const { row, ...admissionResult } = await pendingCreate.finally(() => this.#pendingCreates.delete(pendingCreate));
    return { session: this.#view(caller, row), warnings, ...admissionResult };
  }

  async #run(caller: AgentCaller, request: SessionRequest, options: CreateOptions) {
    const { browserStarter, watchers, deliveries, clock, onStarted: reportStart } = this.#parts;
    const startMs = clock.monotonicMs();
    const id = newId<SessionId>(clock.now());
    await browserStarter.assertDiskRoom();
    const { storedSettings: watcherSettings, undo } = await watchers.check(caller, request, id, options.signal);
    const place = () =>
      this.#place({ ...this.#newRow(caller, request, options, watcherSettings), id }, request, options);
    const { got, waitedMs } = await this.#admit(caller, options, place).catch(async error => {
      await undo();
      throw error;
    });
    if (options.delivery) deliveries.follow(id, options.delivery);
    const row = await this.#start(got.row);
    reportStart(row, (clock.monotonicMs() - startMs - waitedMs) / 1000);
    return { ...got, row, waitedMs: waitedMs + (options.line?.waitedMs ?? 0) };
  }

  // ---- admission ---------------------------------------------------------------------------------------------------

  /** Places the session, at once or after waiting in the queue. Throws a fault if the create is refused. */
  async #admit(caller: AgentCaller, options: CreateOptions, attempt: () => Promise<AttemptResult<PlacedSession>>) {
    const { queue, limits, onRefused: countRefusal } = this.#parts;
    const { signal, waitSeconds, line } = options;
    const application = caller.applicationId;
    const mayQueue = waitSeconds !== undefined && !line;
    const outcome = await queue.enter({
      application,
      attempt,
      ...(mayQueue ? { waitMs: 1000 * Math.min(waitSeconds, WAIT_SECONDS_MAX) } : {}),
      maxWaiting: async () => (await limits.effective(application)).maxWaiting,
      signal,
    });
    if ('got' in outcome) return outcome;
    if (line) throw refusalError(outcome.refused);
    countRefusal(outcome.refused.why);
    throw refusalFault(outcome.refused, outcome.waited);
  }

  /** Makes one attempt to place the session, in a transaction that counts, decides and inserts. */
  async #place(
    row: NewSession,
    { timeout }: SessionRequest,
    { run, isPaid, line }: CreateOptions,
  ): Promise<AttemptResult<PlacedSession>> {
    const { rows, trace, onRefused: countRefusal, rates, hasRoomElsewhere, isInFleet, onLeftLine } = this.#parts;
    const { id, createdAt, hostId } = row;
    trace.share({ 'berth.session_id': id });
    const place = () =>
      rows.place(row, {
        createdAfter: addMs(createdAt, -CREATES_WINDOW_MS),
        terms: configured =>
          termsOf(limitsIn({ configured }), { createdAt, ...(timeout === undefined ? {} : { timeout }) }),
        ...(isPaid ? {} : { hold: (expiresAt: Date) => sessionHold(rates, hostId, { at: createdAt, expiresAt }) }),
        ...(isInFleet() ? { line: line ?? {} } : {}),
        ...(run ? { run } : {}),
      });
    const placementResult = await trace.runInSpan('session.place', place).catch(async error => {
      // The database may have committed the row before the error. `invalid_request` is thrown inside the transaction,
      // so in that case there is no row.
      if (!isFault(error, 'invalid_request')) await this.#endFailedStart(id, reason(error));
      throw error;
    });
    if ('short' in placementResult) throw insufficientCredit(placementResult.short); // Not queued, because waiting adds no credit.
    if ('over' in placementResult) {
      const limitRefusal = refusalOf(limitsIn(placementResult.over), placementResult.over, createdAt);
      if (limitRefusal.why !== 'egress') return { refused: limitRefusal };
      countRefusal('egress'); // Not queued, because the daily limit is reset only at the next UTC day.
      throw refusalFault(limitRefusal);
    }
    if ('behind' in placementResult)
      return { refused: refusalFrom(placementResult.behind) ?? refusal('concurrent', 0, 0) };
    if ('full' in placementResult) {
      const hostRefusal = refusal('host', placementResult.full.slots, placementResult.full.used);
      if (!line && hasRoomElsewhere()) throw refusalError(hostRefusal);
      return { refused: hostRefusal };
    }
    if (line?.place !== undefined) onLeftLine();
    const { placed, use } = placementResult;
    return { got: { row: placed, ...(use ? { quota: quotaOf(limitsIn(use), use, createdAt) } : {}) } };
  }

  /** Builds a new row for each attempt, because its times are relative to the time of the placement. */
  #newRow(
    caller: AgentCaller,
    request: SessionRequest,
    { delivery, isExclusive }: CreateOptions,
    storedByWatchers: JsonObject,
  ): Omit<NewSession, 'id'> {
    const { clock, host, defaultRegion } = this.#parts;
    const now = clock.now();
    return {
      applicationId: caller.applicationId,
      hostId: host,
      keyId: caller.keyId,
      region: request.region ?? defaultRegion,
      keepAlive: request.keepAlive,
      userMetadata: request.userMetadata,
      settings: {
        ...request.settings,
        ...storedByWatchers,
        ...(isExclusive ? EXCLUSIVE_SETTINGS : {}),
        ...(request.regionAsked === undefined ? {} : { regionAsked: request.regionAsked }),
        ...(request.warnings.length > 0 ? { warnings: request.warnings.map(warning => ({ ...warning })) } : {}),
      },
      createdAt: now,
      expiresAt: addMs(now, 1000 * (request.timeout ?? TIMEOUT_DEFAULT_SECONDS)),
      ...(request.keepAlive ? {} : { connectBy: addMs(now, FIRST_CONNECT_TIMEOUT_MS) }),
      ...(delivery ? { createDigest: delivery.digest } : {}),
    };
  }

  // ---- the browser -------------------------------------------------------------------------------------------------

  /**
   * Takes the session from PENDING to RUNNING. A release during the start cancels the start, and the create returns the
   * released session.
   */
  async #start(row: SessionRow): Promise<SessionRow> {
    const { starting, browserStarter, rows, endings, clock, trace } = this.#parts;
    try {
      const live = await starting.run(row.id, async signal => {
        const liveSession = await browserStarter.start(row, signal);
        endings.watch(liveSession);
        return liveSession;
      });
      const box = live.box.session === row.id ? undefined : boxJsonOf(live.box);
      const runningRow = await trace.runInSpan('session.run', () => rows.markRunning(row.id, clock.now(), box));
      if (runningRow) return runningRow;
    } catch (error) {
      if (!(error instanceof StartCancelled)) throw await this.#failStart(row, error);
    }
    const endedRow = await endings.end(row.id, { status: 'COMPLETED', reason: 'released' });
    if (endedRow?.end?.reason === SERVICE_STOPPED_END.reason) throw stoppingFault();
    return endedRow ?? row;
  }

  async #failStart({ id }: SessionRow, error: unknown): Promise<unknown> {
    const { liveSessions, log } = this.#parts;
    const detail = reason(error).replace(/\.$/, '');
    log.error('session.start_failed', { sessionId: id, reason: detail });
    await this.#endFailedStart(id, detail);
    if (isFault(error, 'no_free_slot')) return noFreeSlot(liveSessions.all.length, liveSessions.all.length);
    if (isRequestFault(error)) return error;
    const code = error instanceof WaitExpired ? 'browser_start_timeout' : 'internal';
    return fault(code, `The browser of session ${id} did not start: ${detail}.`, {
      advice:
        'The session has ended (ERROR, start_failed). Create another session; if it happens again, ask the operator to run `berth doctor`.',
      cause: error,
    });
  }

  /** Ends a session that failed to start. If the end cannot be written now, it is written later: see Endings. */
  async #endFailedStart(id: SessionId, detail: string): Promise<void> {
    const end = { status: 'ERROR', reason: 'start_failed', detail } as const;
    await this.#parts.endings.end(id, end).catch(() => {});
  }

  // ---- a repeated create --------------------------------------------------------------------------------------------

  /** See `Sessions.awaitExisting`. */
  async awaitExisting(caller: AgentCaller, id: SessionId): Promise<SessionView> {
    const { starting, rows } = this.#parts;
    await starting.wait(id);
    const read = () => requireSession(rows, caller.applicationId, id);
    const readIfStarted = async (): Promise<SessionRow | undefined> => {
      const row = await read();
      return row.status === 'PENDING' ? undefined : row;
    };
    return this.#view(
      caller,
      await pollUntil(BROWSER_START_TIMEOUT_MS, `session ${id} to start`, readIfStarted).catch(read),
    );
  }

  /** The session of a create whose response was not delivered. Undefined if no such session is running. */
  async #findUndelivered(caller: AgentCaller, delivery: ResponseDelivery): Promise<SessionView | undefined> {
    const row = await this.#parts.deliveries.claim(caller.keyId, delivery);
    if (!row) return undefined;
    this.#parts.deliveries.follow(row.id, delivery);
    const session = await this.awaitExisting(caller, row.id);
    return session.endedAt === undefined ? session : undefined;
  }

  #view(caller: AgentCaller, row: SessionRow): SessionView {
    return viewOf(row, this.#parts.signing.fieldsFor(caller, row.id));
  }

  // ---- stopping ----------------------------------------------------------------------------------------------------

  /** Refuses new creates. Running sessions continue. */
  stop(): void {
    this.#isStopping = true;
    this.#parts.queue.close(stoppingFault);
  }

  /**
   * Waits a short time for browsers that are still starting and then ends them, because the next server does not adopt
   * a browser that is still starting.
   */
  async finish(): Promise<void> {
    const { starting, endings } = this.#parts;
    const waitForAll = (): Promise<unknown> => Promise.allSettled(this.#pendingCreates);
    await withTimeout(FINISH_TIMEOUT_MS, 'creates to finish', waitForAll).catch(() => {});
    await Promise.allSettled(starting.ids.map(id => endings.end(id, SERVICE_STOPPED_END)));
    await waitForAll();
  }
}

/**
 * The limits of the application without the operator's ceiling, because the slots of the host are counted separately.
 */
const limitsIn = ({ configured }: Pick<ApplicationUse, 'configured'>): BrowserLimits =>
  effectiveLimits(configuredLimits(configured), {});

/**
 * Whether the error means that the request itself is invalid, although this was found only when the browser was
 * started.
 */
const isRequestFault = (error: unknown): boolean =>
  isFault(error) && isErrorCode(error.code) && catalogueEntry(error.code).status < 500;
