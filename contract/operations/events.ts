// Events of one session and of all.
import { EventsQuery, SessionEventPage, SessionEventsQuery } from '../events.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { UNBUFFERED } from './shared.ts';

const STREAMED =
  'With `Accept: text/event-stream` they come as they happen, as server-sent events: `id`, `event` the type, `data` the event as JSON. A comment every 15 seconds shows that the stream lives. `Last-Event-ID` goes on behind an event, and wins over `after`.';
const EVENTS_ANSWER = {
  200: {
    description: 'A page of events.',
    schema: SessionEventPage,
    asStream: 'The events as they happen, without end.',
    headers: UNBUFFERED,
  },
} as const;

export const EVENT_OPERATIONS = {
  listSessionEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/events',
    summary: "Read a session's events",
    description: `What happened to the session, oldest first; kept for 31 days after its end. ${STREAMED} The stream begins with the first event and is closed behind \`session.ended\`; asked for again behind that one, it answers 204. What is settled later, such as the save of its context, stands in the list and in the stream of all sessions.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: SessionEventsQuery,
    responses: { ...EVENTS_ANSWER, 204: { description: 'The stream has ended: nothing follows.' } },
    errors: ['not_found', 'stream_limit', 'service_stopping'],
  },
  listEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/events',
    summary: 'Read events of all sessions',
    description: `The same for every session of the application. ${STREAMED} Without \`after\` the stream begins now; \`after=0\` begins with the oldest event there is.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    query: EventsQuery,
    responses: EVENTS_ANSWER,
    errors: ['not_found', 'stream_limit', 'service_stopping'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
