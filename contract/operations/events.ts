// Events of one session, and of an application.
import { EventsQuery, SessionEventPage, SessionEventsQuery } from '../events.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { UNBUFFERED_HEADERS } from './shared.ts';

const STREAM_DESCRIPTION =
  'With `Accept: text/event-stream` the response is a stream of server-sent events, sent as they happen: `id` is the id of the event, `event` its type, `data` the event as JSON. A comment every 15 seconds keeps the stream alive. With `Last-Event-ID`, the stream continues after that event; the header takes precedence over `after`.';
const EVENT_RESPONSES = {
  200: {
    description: 'A page of events.',
    schema: SessionEventPage,
    streamDescription: 'The events as they happen. The stream of an application has no end.',
    headers: UNBUFFERED_HEADERS,
  },
} as const;

export const EVENT_OPERATIONS = {
  listSessionEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/events',
    summary: "Read a session's events",
    description: `Returns the events of the session, oldest first. They are kept for 31 days after its end. ${STREAM_DESCRIPTION} The stream begins with the first event and is closed after \`session.ended\`; a request that continues after that event returns 204. Later events, such as the save of a context, appear in this list and in the stream of all sessions.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: SessionEventsQuery,
    responses: { ...EVENT_RESPONSES, 204: { description: 'The stream has ended. There are no further events.' } },
    errors: ['not_found', 'stream_limit', 'service_stopping'],
  },
  listEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/events',
    summary: 'Read events of an application',
    description: `Returns the events of all sessions of the application, and those of its operations and of the calls of all its agent keys, oldest first. ${STREAM_DESCRIPTION} Without \`after\` the stream begins with the next event; \`after=0\` begins with the oldest event.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    query: EventsQuery,
    responses: EVENT_RESPONSES,
    errors: ['not_found', 'stream_limit', 'service_stopping'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
