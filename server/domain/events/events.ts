// Reads events for callers, as a list or as a stream. A stream buffers nothing: it reads the next events from the
// database when its reader requests them, so a slow reader uses no memory.
import { EVENT_TYPES, type EventType, type SessionEvent } from '../../../contract/events.ts';
import type { EventFilter, EventRows, SessionEventRow } from '../../engines/store/rows/events.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { isWithin, periodOf } from '../period.ts';
import { hasEnded, requireSession } from '../sessions/session.ts';
import type { EventQuery, Events } from './api.ts';
import { StreamWakers } from './stream-wakers.ts';
import { Streams } from './streams.ts';

/** Notifications wake streams. If a notification is lost, a stream reads again after this time. */
const POLL_INTERVAL_MS = 2_000;
const BATCH_MAX = 100;
/**
 * Ids are padded to this length, so that they sort correctly as strings. The largest integer that is safe in JSON has
 * this many digits.
 */
const ID_DIGITS = 16;
const FINAL_EVENT_TYPE: EventType = 'session.ended';

export interface EventParts {
  readonly events: Pick<EventRows, 'read' | 'newestId'>;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly clock: Clock;
}

export class EventService implements Events, Closeable {
  readonly #parts: EventParts;
  readonly #wakers: StreamWakers;
  readonly #streams = new Streams();

  private constructor(parts: EventParts) {
    this.#parts = parts;
    this.#wakers = new StreamWakers(parts.clock);
  }

  static async open(parts: EventParts, listen: Store['listen']): Promise<EventService> {
    const service = new EventService(parts);
    await service.#wakers.listen(listen);
    return service;
  }

  async list(
    caller: AgentCaller,
    query: EventQuery & { readonly limit: number },
  ): Promise<{ events: readonly SessionEvent[]; nextAfter?: string }> {
    const types = typesOf(query);
    const period = periodOf(query);
    const session = await this.#findSession(caller, query.session);
    const filter = { ...filterOf(Number(query.after ?? 0), session, types, query.limit), ...period };
    const { events, through, isFull } = await this.#parts.events.read(caller.applicationId, filter);
    return { events: events.map(eventView), ...(isFull ? { nextAfter: formattedEventId(through) } : {}) };
  }

  async *follow(
    caller: AgentCaller,
    query: EventQuery,
    callerSignal: AbortSignal,
  ): AsyncGenerator<readonly SessionEvent[], void> {
    const types = typesOf(query);
    const period = periodOf(query);
    const session = await this.#findSession(caller, query.session);
    const { closingSignal: closing } = this.#streams;
    if (closing.aborted) throw serviceStopping();
    const streamPlace = this.#streams.enter(caller.applicationId);
    const waker = this.#wakers.register(caller.applicationId, session?.id);
    const signal = AbortSignal.any([callerSignal, closing]);
    signal.addEventListener('abort', () => waker.trigger(), { once: true });
    try {
      const wantsOnlyNewEvents = !session && query.after === undefined && query.from === undefined;
      let afterId = wantsOnlyNewEvents ? await this.#newest(caller) : Number(query.after ?? 0);
      // Reads at least once, because a stream that ends without a read gets the status 204, which clients interpret as
      // the end of the session.
      do {
        // The type of the last event is always included, so that a stream that is filtered by other types also ends.
        const readTypes = session && types ? [...types, FINAL_EVENT_TYPE] : types;
        const page = await this.#parts.events.read(caller.applicationId, {
          ...filterOf(afterId, session, readTypes, BATCH_MAX),
          ...(period.from ? { from: period.from } : {}), // `to` is checked below.
        });
        afterId = page.through;
        const visibleEvents = page.events.filter(
          ({ type, at }) => (!types || types.includes(type)) && isWithin(period, at.getTime()),
        );
        const isOver = isLastPage(page, session);
        if (visibleEvents.length > 0 || !isOver) yield visibleEvents.map(eventView);
        if (isOver) return;
        if (!page.isFull && !signal.aborted) await waker.next(POLL_INTERVAL_MS);
      } while (!signal.aborted);
    } finally {
      waker.close();
      streamPlace.leave();
    }
  }

  /** Ends every stream. */
  async close(): Promise<void> {
    this.#streams.close();
    await this.#wakers.close();
  }

  #newest({ applicationId }: AgentCaller): Promise<number> {
    return this.#parts.events.newestId(applicationId);
  }

  async #findSession(caller: AgentCaller, id: string | undefined): Promise<SessionRow | undefined> {
    return id === undefined ? undefined : requireSession(this.#parts.sessions, caller.applicationId, id);
  }
}

const serviceStopping = (): Error =>
  fault('service_stopping', 'The service is stopping, so no event stream was opened.', {
    advice: 'Open the stream again in a few seconds, with the id of the last event in Last-Event-ID.',
  });

/**
 * Whether no more events of the session can follow this page. `session` is the state of the session at the beginning of
 * the stream. If the session had already ended, only stored events can follow.
 */
const isLastPage = (page: Awaited<ReturnType<EventRows['read']>>, session: SessionRow | undefined): boolean =>
  session !== undefined &&
  (page.events.some(({ type }) => type === FINAL_EVENT_TYPE) || (hasEnded(session) && !page.isFull));

const filterOf = (
  after: number,
  session: SessionRow | undefined,
  types: readonly EventType[] | undefined,
  limit: number,
): EventFilter => ({
  after,
  limit,
  ...(session ? { session: session.id } : {}),
  ...(types ? { types } : {}),
});

const typesOf = ({ type }: EventQuery): readonly EventType[] | undefined =>
  type?.split(',').map(word => requireEventType(word.trim()));

function requireEventType(word: string): EventType {
  const type = EVENT_TYPES.find(known => known === word);
  if (!type)
    throw invalidRequest([
      { path: 'type', message: `is ${JSON.stringify(word)}; expected one or more of ${EVENT_TYPES.join(', ')}` },
    ]);
  return type;
}

export const formattedEventId = (id: number): string => String(id).padStart(ID_DIGITS, '0');

/** Returns an event as the API shows it. */
export const eventView = ({ id, sessionId, at, type, actor, detail }: SessionEventRow): SessionEvent => ({
  id: formattedEventId(id),
  ...(sessionId === undefined ? {} : { sessionId }),
  type,
  time: at.toISOString(),
  actor,
  detail,
});
