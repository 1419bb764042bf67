// The verbs of the API on sessions, each as the story one would tell of it. The browser side is bring-up.ts and
// endings.ts; who is attached is presence.ts; what is due is expire.ts.

import { catalogueEntry, isErrorCode } from '../../../contract/errors.ts';
import { TIMEOUT_DEFAULT_SECONDS } from '../../../contract/sessions.ts';
import type { BoxEnd } from '../../engines/slots/slots.ts';
import type { Admission, Placed } from '../../engines/store/rows/admission.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';
import type {
  MetadataTerm,
  NewSession,
  SessionEnd,
  SessionRow,
  SessionRows,
  SessionStatus,
} from '../../engines/store/rows/sessions.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import { type HostId, isUuid, newId, type SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Tracer } from '../../kit/trace.ts';
import { until, WaitExpired, within } from '../../kit/wait.ts';
import { capacity, fault, invalidRequest, notFound, projectMismatch, sessionNotRunning } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Admission as Admissions, Admitted } from '../limits/admission.ts';
import type {
  CreatedSession,
  CreateManner,
  SessionChange,
  SessionListQuery,
  Sessions,
  SessionView,
  SessionWish,
} from './api.ts';
import { noteOf } from './boot.ts';
import { BROWSER_START_MS, type BringUp } from './bring-up.ts';
import { CONNECT_SCOPE } from './connect.ts';
import type { Deliveries, Delivery } from './deliveries.ts';
import type { Endings } from './endings.ts';
import type { LiveSession, LiveSessions } from './live.ts';
import { checkedMetadata } from './metadata.ts';
import { parseMetadataQuery, parseStatuses } from './query.ts';
import { hasEnded, viewOf } from './session.ts';
import type { Signing } from './signing.ts';
import { StartCancelled, type Starting } from './starting.ts';
import type { Watchers } from './watchers.ts';

/** A session without keepAlive that nobody connects to ends after this. */
const FIRST_CONNECT_MS = 300_000;
const LIST_MAX = 1000;
/** A service that stops must be gone in ten seconds; most browsers are up in one. */
const CREATES_FINISH_MS = 3_000;

const STOPPED = {
  status: 'ERROR',
  reason: 'service_restart',
  detail: 'the service stopped while the browser was starting',
} as const;

const stopping = () =>
  fault('capacity', 'The service is stopping and does not accept new sessions.', {
    advice: 'Send the request again in a few seconds.',
  });

export interface SessionsParts {
  readonly rows: SessionRows;
  readonly lives: LiveSessions;
  readonly starting: Starting;
  readonly bringUp: BringUp;
  readonly endings: Endings;
  readonly admission: Admissions;
  readonly deliveries: Deliveries;
  readonly signing: Signing;
  readonly watchers: Watchers;
  readonly host: HostId;
  readonly defaultRegion: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly trace: Tracer;
  readonly usage: Sessions['usage'];
  /** How long a create took to a running browser, for the metrics. */
  readonly started: (row: SessionRow, seconds: number) => void;
}

export class SessionService implements Sessions {
  readonly #parts: SessionsParts;
  readonly #creating = new Set<Promise<Admitted>>();
  #stopping = false;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  /** From now on creates are refused; what runs goes on. */
  stopCreating(): void {
    this.#stopping = true;
    this.#parts.admission.close(stopping);
  }

  async create(caller: AgentCaller, wish: SessionWish, manner: CreateManner): Promise<CreatedSession> {
    if (this.#stopping) throw stopping();
    if (wish.projectId !== undefined && wish.projectId.toLowerCase() !== caller.applicationId)
      throw projectMismatch(wish.projectId);
    const { warnings } = wish;
    const lost = manner.delivery && (await this.#lost(caller, manner.delivery));
    if (lost) return { session: lost, warnings, waitedMs: 0 };
    const creating = this.#create(caller, wish, manner);
    this.#creating.add(creating);
    const { row, ...admitted } = await creating.finally(() => this.#creating.delete(creating));
    return { session: this.#view(caller, row), warnings, ...admitted };
  }

  async again(caller: AgentCaller, id: SessionId): Promise<SessionView> {
    await this.#parts.starting.wait(id);
    const started = async (): Promise<SessionRow | undefined> => {
      const row = await this.#row(caller, id);
      return row.status === 'PENDING' ? undefined : row;
    };
    const row = await until(BROWSER_START_MS, `session ${id} to start`, started).catch(() => this.#row(caller, id));
    return this.#view(caller, row);
  }

  async list(caller: AgentCaller, query: SessionListQuery): Promise<{ sessions: SessionView[]; nextBefore?: string }> {
    const limit = query.limit ?? LIST_MAX;
    const filter: { statuses?: readonly SessionStatus[]; metadata?: readonly MetadataTerm[]; before?: SessionId } = {};
    if (query.status !== undefined) filter.statuses = parseStatuses(query.status);
    if (query.q !== undefined) filter.metadata = parseMetadataQuery(query.q);
    if (query.before !== undefined) filter.before = query.before as SessionId;
    const rows = await this.#parts.rows.list(caller.applicationId, { ...filter, limit: limit + 1 });
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const sessions = shown.map(row => viewOf(row));
    return rows.length > limit && last ? { sessions, nextBefore: last.id } : { sessions };
  }

  async read(caller: AgentCaller, id: string): Promise<SessionView> {
    const row = await this.#row(caller, id);
    return { ...this.#view(caller, row), uploads: [], ...(await this.#parts.watchers.describe(row)) };
  }

  async update(caller: AgentCaller, id: string, change: SessionChange): Promise<SessionView> {
    if (change.projectId !== undefined && change.projectId.toLowerCase() !== caller.applicationId)
      throw projectMismatch(change.projectId);
    const row = await this.#row(caller, id);
    if (hasEnded(row)) throw sessionNotRunning(id, row.status);
    const by: Actor = { kind: 'agentKey', id: caller.keyId };
    const changed = await this.#change(row, change, by);
    if (change.status === undefined) return viewOf(changed);
    const ended = await this.#parts.endings.end(row.id, { status: 'COMPLETED', reason: 'released', by });
    return viewOf(ended ?? (await this.#row(caller, id)));
  }

  usage(caller: AgentCaller): ReturnType<Sessions['usage']> {
    return this.#parts.usage(caller);
  }

  /** Takes a browser that was brought up, or adopted, among the living, and watches for its end. */
  welcome(live: LiveSession): void {
    this.#parts.lives.add(live);
    const broken = live.browser.failed.then(error => ({ why: 'killed', detail: reason(error) }) as const);
    void Promise.race([live.box.gone, broken]).then(async end => {
      // What cannot be written now is owed; see Endings.
      if (live.stands) await this.#parts.endings.end(live.id, await endOfBox(live, end)).catch(() => {});
    });
  }

  /** Ends every session of this host, for a drain. */
  async endAll(end: SessionEnd): Promise<void> {
    await this.#creatingEnds();
    await Promise.all(this.#parts.lives.all.map(live => this.#parts.endings.end(live.id, end)));
  }

  /** Lets go of every session without ending it: the successor adopts them. */
  async abandonAll(): Promise<void> {
    await this.#creatingEnds();
    await Promise.all(this.#parts.lives.all.map(live => live.abandon()));
  }

  /** Nobody adopts a browser that is still starting: it has a little time to come up, then it is ended. */
  async #creatingEnds(): Promise<void> {
    const { starting, endings } = this.#parts;
    const all = (): Promise<unknown> => Promise.allSettled(this.#creating);
    await within(CREATES_FINISH_MS, 'creates to finish', all).catch(() => {});
    await Promise.allSettled(starting.ids.map(id => endings.end(id, STOPPED)));
    await all();
  }

  async #create(caller: AgentCaller, wish: SessionWish, manner: CreateManner): Promise<Admitted> {
    const { admission, deliveries, watchers, clock, started } = this.#parts;
    const { delivery, ...asked } = manner;
    const id = newId<SessionId>(clock.now());
    const beganMs = clock.monotonicMs();
    await this.#parts.bringUp.demandDiskRoom();
    const { kept, undo } = await watchers.admit(caller, wish, id, manner.signal);
    const admitted = await admission
      .admit({
        ...asked,
        application: caller.applicationId,
        ...(wish.timeout === undefined ? {} : { timeout: wish.timeout }),
        place: ask => this.#place({ ...this.#newRow(caller, wish, kept), id, ...digestOf(delivery) }, ask),
      })
      .catch(async error => {
        await undo();
        throw error;
      });
    if (delivery) deliveries.follow(admitted.row.id, delivery);
    const row = await this.#bringUp(admitted.row);
    started(row, (clock.monotonicMs() - beganMs - admitted.waitedMs) / 1000);
    return { ...admitted, row };
  }

  #place(wanted: NewSession, ask: Admission): Promise<Placed> {
    const { rows, trace } = this.#parts;
    trace.share({ 'berth.session_id': wanted.id });
    return trace
      .during('session.place', () => rows.place(wanted, ask))
      .catch(error => {
        // A refusal by us, inside the transaction, is no trouble of the database.
        if (isFault(error, 'invalid_request')) throw error;
        return this.#notPlaced(wanted.id, error);
      });
  }

  /** The session of a create that its client did not hear of; undefined when there is none that runs. */
  async #lost(caller: AgentCaller, delivery: Delivery): Promise<SessionView | undefined> {
    const row = await this.#parts.deliveries.claim(caller.keyId, delivery);
    if (!row) return undefined;
    this.#parts.deliveries.follow(row.id, delivery);
    const session = await this.again(caller, row.id);
    return session.endedAt === undefined ? session : undefined;
  }

  /** The database may have placed it and died before it could say so. */
  async #notPlaced(id: SessionId, error: unknown): Promise<never> {
    await this.#endFailed(id, reason(error));
    throw error;
  }

  #newRow(caller: AgentCaller, wish: SessionWish, kept: JsonObject): Omit<NewSession, 'id'> {
    const { clock, host, defaultRegion } = this.#parts;
    const now = clock.now();
    return {
      applicationId: caller.applicationId,
      hostId: host,
      keyId: caller.keyId,
      region: wish.region ?? defaultRegion,
      keepAlive: wish.keepAlive,
      userMetadata: wish.userMetadata,
      settings: {
        ...wish.settings,
        ...kept,
        ...(wish.regionAsked === undefined ? {} : { regionAsked: wish.regionAsked }),
      },
      createdAt: now,
      expiresAt: plus(now, 1000 * (wish.timeout ?? TIMEOUT_DEFAULT_SECONDS)),
      ...(wish.keepAlive ? {} : { connectBy: plus(now, FIRST_CONNECT_MS) }),
    };
  }

  /** PENDING to RUNNING. A release meanwhile cancels it, and the create answers with the session that was released. */
  async #bringUp(row: SessionRow): Promise<SessionRow> {
    const { starting, bringUp, rows, endings, clock, trace } = this.#parts;
    try {
      const live = await starting.run(row.id, async signal => {
        const live = await bringUp.start(row, signal);
        this.welcome(live);
        return live;
      });
      const box = live.box.session === row.id ? undefined : noteOf(live.box);
      const running = await trace.during('session.run', () => rows.run(row.id, clock.now(), box));
      if (running) return running;
    } catch (error) {
      if (!(error instanceof StartCancelled)) throw await this.#startFailed(row, error);
    }
    const ended = await endings.end(row.id, { status: 'COMPLETED', reason: 'released' });
    if (ended?.end?.reason === STOPPED.reason) throw stopping();
    return ended ?? row;
  }

  async #startFailed(row: SessionRow, error: unknown): Promise<unknown> {
    const detail = reason(error);
    this.#parts.log.error('session.start_failed', { sessionId: row.id, reason: detail });
    await this.#endFailed(row.id, detail);
    if (isFault(error, 'no_free_slot')) return capacity(this.#parts.lives.all.length, this.#parts.lives.all.length);
    if (isRefusal(error)) return error;
    const message = `The browser of session ${row.id} did not start: ${detail}.`;
    const advice = 'The session is ERROR / start_failed. Create another; if it happens again, run `berth doctor`.';
    return fault(error instanceof WaitExpired ? 'browser_start_timeout' : 'internal', message, {
      advice,
      cause: error,
    });
  }

  /** Where even this cannot be written now, it is made up for. */
  async #endFailed(id: SessionId, detail: string): Promise<void> {
    const end = { status: 'ERROR', reason: 'start_failed', detail } as const;
    await this.#parts.endings.end(id, end).catch(() => {});
  }

  async #change(row: SessionRow, change: SessionChange, by: Actor): Promise<SessionRow> {
    if (change.userMetadata === undefined && change.timeout === undefined) return row;
    if (row.status !== 'RUNNING') throw sessionNotRunning(row.id, row.status);
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const wanted = {
      by,
      ...(change.userMetadata === undefined ? {} : { userMetadata: checkedMetadata(change.userMetadata) }),
      ...(change.timeout === undefined ? {} : { expiresAt: await this.#newEnd(row, change.timeout, now) }),
    };
    const changed = await rows.change(row.applicationId, row.id, wanted, now);
    if (changed) return changed;
    const current = await rows.byId(row.id);
    throw sessionNotRunning(row.id, current?.status ?? row.status);
  }

  /** Counts from creation, like the one at create. */
  async #newEnd(row: SessionRow, timeoutSeconds: number, now: Date): Promise<Date> {
    const { admission } = this.#parts;
    const limits = await admission.effective(row.applicationId);
    const expiresAt = plus(row.createdAt, 1000 * admission.timeoutOf(limits, timeoutSeconds));
    if (expiresAt <= now)
      throw invalidRequest([{ path: 'timeout', message: 'counts from creation, and that time has passed already' }]);
    return expiresAt;
  }

  async #row(caller: AgentCaller, id: string): Promise<SessionRow> {
    const row = isUuid(id) ? await this.#parts.rows.get(caller.applicationId, id as SessionId) : undefined;
    if (!row) throw notFound('Session', id);
    return row;
  }

  #view(caller: AgentCaller, row: SessionRow): SessionView {
    return viewOf(
      row,
      caller.scopes.has(CONNECT_SCOPE) ? this.#parts.signing.fieldsOf(row.id, caller.keyId) : undefined,
    );
  }
}

const digestOf = (delivery: Delivery | undefined): Pick<NewSession, 'createDigest'> =>
  delivery ? { createDigest: delivery.digest } : {};

/** The pipe often breaks a moment before the process is seen dead; the box knows why, so it is asked first. */
async function endOfBox(live: LiveSession, seen: Pick<BoxEnd, 'why' | 'detail'>): Promise<SessionEnd> {
  const box = await within(BOX_VERDICT_MS, 'the box to be seen gone', () => live.box.gone).catch(() => undefined);
  const { why, detail } = box ?? seen;
  if (why === 'out_of_memory') return { status: 'ERROR', reason: 'out_of_memory', detail };
  if (why === 'disk_limit') return { status: 'ERROR', reason: 'disk_limit', detail };
  return { status: 'ERROR', reason: 'crashed', detail };
}

const BOX_VERDICT_MS = 1_000;

/** The caller asked for what cannot be had, and it showed only now. */
const isRefusal = (error: unknown): boolean =>
  isFault(error) && isErrorCode(error.code) && catalogueEntry(error.code).status < 500;
