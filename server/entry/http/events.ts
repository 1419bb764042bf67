// HTTP handlers for events. They respond with a JSON list, or with a stream if the caller accepts one.
import { EVENT_LIMIT_DEFAULT, type SessionEvent } from '../../../contract/events.ts';
import type { EventQuery, Events } from '../../domain/events/api.ts';
import { invalidRequest } from '../../domain/faults.ts';
import type { Callers } from '../../domain/identity/callers.ts';
import type { KeyUses } from '../../domain/identity/key-uses.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { HandlerInput } from './bind.ts';
import { EVENT_STREAM, eventStream } from './event-stream.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

const EVENT_ID = /^\d{1,16}$/;

export interface EventHandlerParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly events: Events;
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly keyUses: Pick<KeyUses, 'hold'>;
}

type EventsInput = HandlerInput<'listSessionEvents'> | HandlerInput<'listEvents'>;

export const eventHandlers = (parts: EventHandlerParts) => ({
  listSessionEvents: (input: HandlerInput<'listSessionEvents'>): Promise<HttpResponse> =>
    listOrStreamEvents(parts, input, { ...filterOf(input.query), session: input.params.id }),

  listEvents: (input: HandlerInput<'listEvents'>): Promise<HttpResponse> => {
    const { sessionId } = input.query;
    return listOrStreamEvents(parts, input, {
      ...filterOf(input.query),
      ...(sessionId === undefined ? {} : { session: sessionId }),
    });
  },
});

const filterOf = ({ after, type, from, to }: EventQuery): EventQuery => ({
  ...(after === undefined ? {} : { after }),
  ...(type === undefined ? {} : { type }),
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});

async function listOrStreamEvents(
  parts: EventHandlerParts,
  input: EventsInput,
  query: EventQuery,
): Promise<HttpResponse> {
  if (input.stream) return streamEvents(parts, input, { ...query, ...readLastEventId(input.stream.lastEventId) });
  const { caller } = input;
  const page = await parts.events.list(caller, { ...query, limit: input.query.limit ?? EVENT_LIMIT_DEFAULT });
  return jsonResponse({ data: page.events, ...(page.nextAfter === undefined ? {} : { nextCursor: page.nextAfter }) });
}

/** The first batch is read before the response starts, so that a refusal can be sent with its own status. */
async function streamEvents(
  { events, callers, keyUses, clock, log }: EventHandlerParts,
  input: EventsInput,
  query: EventQuery,
): Promise<HttpResponse> {
  const laterItems = events.follow(input.caller, query, input.signal);
  const firstBatch = await laterItems.next();
  if (firstBatch.done) return { ...emptyResponse(), status: 204 }; // With any other status, EventSource would reconnect forever.
  const checkCredential = () => callers.authenticate(input.presented, 'agentKey');
  const watchCredential = (end: () => void) => keyUses.hold(input.caller, end);
  return {
    body: eventStream({
      firstItems: firstBatch.value,
      laterBatches: laterItems,
      toStreamedItem,
      checkCredential,
      watchCredential,
      clock,
      log,
    }),
    contentType: EVENT_STREAM,
    // Prevents a reverse proxy from buffering the stream.
    headers: { 'x-accel-buffering': 'no' },
  };
}

const toStreamedItem = (event: SessionEvent) => ({ id: event.id, type: event.type, data: event });

function readLastEventId(id: string | undefined): { after?: string } {
  if (!id) return {};
  if (!EVENT_ID.test(id)) throw invalidRequest([{ path: 'last-event-id', message: 'is not the id of an event' }]);
  return { after: id };
}
