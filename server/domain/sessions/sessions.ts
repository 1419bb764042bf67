// The session operations of the API. create.ts creates sessions, browser-starter.ts and endings.ts start and end
// browsers, presence.ts counts clients, expire.ts ends sessions that are due.
import type { Actor } from '../../engines/store/rows/events.ts';
import type { SessionFilter, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import { assertProject, invalidRequest, sessionNotRunning } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { timeoutSeconds } from '../limits/admission.ts';
import type { Limits } from '../limits/limits.ts';
import type { DecidedEnd } from './actors.ts';
import type {
  CreatedSession,
  CreateOptions,
  SessionChange,
  SessionListQuery,
  SessionRequest,
  Sessions,
  SessionView,
} from './api.ts';
import type { Creates } from './create.ts';
import type { Endings } from './endings.ts';
import type { LiveSessions } from './live.ts';
import { requireValidMetadata } from './metadata.ts';
import { parseEndReasons, parseSessionQuery, parseStatuses } from './query.ts';
import { hasEnded, requireSession, viewOf, warningsOf } from './session.ts';
import { effectiveSettings } from './settings.ts';
import type { Signing } from './signing.ts';
import type { Watchers } from './watchers.ts';

const LIST_MAX = 1000;

export interface SessionsParts {
  readonly rows: SessionRows;
  readonly liveSessions: LiveSessions;
  readonly creates: Creates;
  readonly endings: Endings;
  readonly limits: Pick<Limits, 'effective'>;
  readonly signing: Signing;
  readonly watchers: Watchers;
  readonly clock: Clock;
}

export class SessionService implements Sessions {
  readonly #parts: SessionsParts;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  create(caller: AgentCaller, request: SessionRequest, options: CreateOptions): Promise<CreatedSession> {
    return this.#parts.creates.create(caller, request, options);
  }

  awaitExisting(caller: AgentCaller, id: SessionId): Promise<SessionView> {
    return this.#parts.creates.awaitExisting(caller, id);
  }

  async list(caller: AgentCaller, query: SessionListQuery): Promise<{ sessions: SessionView[]; nextBefore?: string }> {
    const limit = query.limit ?? LIST_MAX;
    const filter = { ...filterOf(query), limit: limit + 1 };
    const rows = await this.#parts.rows.list(caller.applicationId, filter);
    const shownRows = rows.slice(0, limit);
    const sessions = shownRows.map(row => viewOf(row));
    const nextBefore =
      rows.length > limit
        ? shownRows.at(-1)?.id
        : filter.words && (await this.#parts.rows.lastSearched(caller.applicationId, filter));
    return nextBefore ? { sessions, nextBefore } : { sessions };
  }

  async read(caller: AgentCaller, id: string): Promise<SessionView> {
    const row = await this.#row(caller, id);
    const view = viewOf(row, this.#parts.signing.fieldsFor(caller, row.id));
    const { browserSettings, ...description } = await this.#parts.watchers.describe(row);
    return {
      ...view,
      browserSettings: { ...effectiveSettings(row.settings), ...browserSettings },
      uploads: [],
      warnings: warningsOf(row),
      ...description,
    };
  }

  async update(caller: AgentCaller, id: string, change: SessionChange): Promise<SessionView> {
    assertProject(caller.applicationId, change.projectId);
    const row = await this.#row(caller, id);
    if (hasEnded(row)) throw sessionNotRunning(id, row.status);
    const by: Actor = { kind: 'agentKey', id: caller.keyId };
    // While a session is starting, a release is accepted and other changes in the same request are ignored, so that a
    // caller that cleans up is never refused.
    const isReleaseWhileStarting = change.status !== undefined && row.status === 'PENDING';
    const changedRow = isReleaseWhileStarting ? row : await this.#change(row, change, by);
    if (change.status === undefined) return viewOf(changedRow);
    const endedRow = await this.#parts.endings.end(row.id, { status: 'COMPLETED', reason: 'released', by });
    return viewOf(endedRow ?? (await this.#row(caller, id)));
  }

  usage(caller: AgentCaller): ReturnType<Sessions['usage']> {
    return this.#parts.rows.usage(caller.applicationId);
  }

  /** Refuses new creates. Running sessions continue. */
  stopCreating(): void {
    this.#parts.creates.stop();
  }

  /** Ends every session of this host, for a drain. */
  async endAll(end: DecidedEnd): Promise<void> {
    await this.#parts.creates.finish();
    await Promise.all(this.#parts.liveSessions.all.map(liveSession => this.#parts.endings.end(liveSession.id, end)));
  }

  /** Leaves every session running for the next server, which adopts them. */
  async abandonAll(): Promise<void> {
    await this.#parts.creates.finish();
    await Promise.all(this.#parts.liveSessions.all.map(liveSession => liveSession.abandon()));
  }

  async #change(row: SessionRow, change: SessionChange, by: Actor): Promise<SessionRow> {
    if (change.userMetadata === undefined && change.timeout === undefined) return row;
    if (row.status !== 'RUNNING') throw sessionNotRunning(row.id, row.status);
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const rowChange = {
      by,
      ...(change.userMetadata === undefined ? {} : { userMetadata: requireValidMetadata(change.userMetadata) }),
      ...(change.timeout === undefined ? {} : { expiresAt: await this.#newExpiry(row, change.timeout, now) }),
    };
    const changedRow = await rows.change(row.applicationId, row.id, rowChange, now);
    if (changedRow) {
      this.#parts.liveSessions.get(row.id)?.setExpiry(changedRow.expiresAt);
      return changedRow;
    }
    const currentRow = await rows.byId(row.id);
    throw sessionNotRunning(row.id, currentRow?.status ?? row.status);
  }

  /** Returns the new expiry time of the session. `timeout` counts from the creation of the session, as in a create. */
  async #newExpiry(row: SessionRow, timeout: number, now: Date): Promise<Date> {
    const limits = await this.#parts.limits.effective(row.applicationId);
    const expiresAt = addMs(row.createdAt, 1000 * timeoutSeconds(limits, timeout));
    if (expiresAt <= now)
      throw invalidRequest([
        {
          path: 'timeout',
          message: 'is counted from the creation of the session, and the resulting end time is in the past',
        },
      ]);
    return expiresAt;
  }

  #row(caller: AgentCaller, id: string): Promise<SessionRow> {
    return requireSession(this.#parts.rows, caller.applicationId, id);
  }
}

/** Converts a query to a filter. Ids have been validated by the contract. */
const filterOf = (query: SessionListQuery): Omit<SessionFilter, 'limit'> => ({
  ...(query.status === undefined ? {} : { statuses: parseStatuses(query.status) }),
  ...(query.endReason === undefined ? {} : { endReasons: parseEndReasons(query.endReason) }),
  ...(query.q === undefined ? {} : parseSessionQuery(query.q)),
  ...(query.keyId === undefined ? {} : { keyId: query.keyId as KeyId }),
  ...(query.atLeastSeconds === undefined ? {} : { atLeastSeconds: query.atLeastSeconds }),
  ...(query.atMostSeconds === undefined ? {} : { atMostSeconds: query.atMostSeconds }),
  ...(query.createdAfter === undefined ? {} : { createdAfter: new Date(query.createdAfter) }),
  ...(query.createdBefore === undefined ? {} : { createdBefore: new Date(query.createdBefore) }),
  ...(query.before === undefined ? {} : { before: query.before as SessionId }),
});
