// HTTP handlers for events: as a JSON list, or as a stream for callers that accept one.
import { EVENT_LIMIT_DEFAULT, type SessionEvent } from '../../../contract/events.ts';
import type { EventQuery, Events } from '../../domain/events/api.ts';
import { invalidRequest } from '../../domain/faults.ts';
import type { Callers } from '../../domain/identity/callers.ts';
import type { KeyUses } from '../../domain/identity/key-uses.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';
import { EVENT_STREAM, eventStream } from './event-stream.ts';

const EVENT_ID = /^\d{1,16}$/;

export interface EventHandlerParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly events: Events;
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly keyUses: Pick<KeyUses, 'hold'>;
}

type Asked = In<'listSessionEvents'> | In<'listEvents'>;

export const eventHandlers = (parts: EventHandlerParts) => ({
  listSessionEvents: (asked: In<'listSessionEvents'>): Promise<Answer> =>
    events(parts, asked, { ...only(asked.query), session: asked.params.id }),

  listEvents: (asked: In<'listEvents'>): Promise<Answer> => {
    const { sessionId } = asked.query;
    return events(parts, asked, { ...only(asked.query), ...(sessionId === undefined ? {} : { session: sessionId }) });
  },
});

const only = ({ after, type, from, to }: EventQuery): EventQuery => ({
  ...(after === undefined ? {} : { after }),
  ...(type === undefined ? {} : { type }),
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});

async function events(parts: EventHandlerParts, asked: Asked, query: EventQuery): Promise<Answer> {
  if (asked.stream) return streamed(parts, asked, { ...query, ...readLastEventId(asked.stream.lastEventId) });
  const { caller } = asked;
  const page = await parts.events.list(caller, { ...query, limit: asked.query.limit ?? EVENT_LIMIT_DEFAULT });
  return answer({ data: page.events, ...(page.nextAfter === undefined ? {} : { nextCursor: page.nextAfter }) });
}

/** The first batch is read before the response starts, so that a refusal can be sent with its own status. */
async function streamed(
  { events, callers, keyUses, clock, log }: EventHandlerParts,
  asked: Asked,
  query: EventQuery,
): Promise<Answer> {
  const rest = events.follow(asked.caller, query, asked.signal);
  const first = await rest.next();
  if (first.done) return { ...nothing(), status: 204 }; // With any other status, EventSource would reconnect forever.
  const checkCredential = () => callers.authenticate(asked.presented, 'agentKey');
  const watchCredential = (end: () => void) => keyUses.hold(asked.caller, end);
  return {
    body: eventStream({ first: first.value, rest, shown, checkCredential, watchCredential, clock, log }),
    contentType: EVENT_STREAM,
    // Prevents a reverse proxy from buffering the stream.
    headers: { 'x-accel-buffering': 'no' },
  };
}

const shown = (event: SessionEvent) => ({ id: event.id, type: event.type, data: event });

function readLastEventId(id: string | undefined): { after?: string } {
  if (!id) return {};
  if (!EVENT_ID.test(id)) throw invalidRequest([{ path: 'last-event-id', message: 'is not the id of an event' }]);
  return { after: id };
}
