// What happened to sessions, as callers read it: as a list, or as it happens.
import { type Static, Type } from 'typebox';
import { AnyObject, Time, Uuid } from './common.ts';

export const EVENT_LIMIT_DEFAULT = 100;
export const EVENT_LIMIT_MAX = 1000;

export const EVENT_TYPES = [
  'session.created',
  'session.launched',
  'session.claimed',
  'session.started',
  'client.connected',
  'client.disconnected',
  'client.refused',
  'session.updated',
  'session.adopted',
  'session.release_requested',
  'session.end_decided',
  'session.ended',
  'session.events_limited',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const ACTOR_KINDS = ['agentKey', 'client', 'clock', 'operator', 'service', 'browser'] as const;

const EventId = (description: string) => Type.String({ pattern: '^[0-9]{1,16}$', description });

export const SessionEvent = Type.Object(
  {
    id: EventId(
      'Sorts by the order in which events can be read. Pass it as `after`, or as `Last-Event-ID`, to go on behind it.',
    ),
    sessionId: Uuid('The session.'),
    type: Type.Enum([...EVENT_TYPES], {
      description:
        '`session.launched` a browser was started for it, `session.claimed` it got one that waited; `session.started` it runs; `session.adopted` a restarted service took it over; `session.end_decided` tells why it ends and who decided, `session.ended` that it has: nothing follows. `session.events_limited`: too many events, only the end is still told.',
    }),
    time: Time('When it happened.'),
    actor: Type.Object(
      {
        kind: Type.Enum([...ACTOR_KINDS], {
          description:
            '`agentKey` a caller of this API, `client` a CDP connection, `clock` a time limit, `operator`, `service` Berth itself, `browser` Chromium.',
        }),
        id: Type.Optional(Type.String({ description: 'With `agentKey`: id of the key.' })),
      },
      { description: 'Who did it.' },
    ),
    detail: AnyObject(
      'Facts, by type: `reason` and `status` of an end, `clients` that are connected, `tookMs` of a start, what was updated.',
    ),
  },
  { description: 'Something that happened to a session.' },
);
export type SessionEvent = Static<typeof SessionEvent>;

export const SessionEventPage = Type.Object({
  data: Type.Array(SessionEvent, { description: 'Oldest first.' }),
  nextCursor: Type.Optional(Type.String({ description: 'Present when there is more: pass it as `after`.' })),
});
export type SessionEventPage = Static<typeof SessionEventPage>;

const Paging = {
  after: Type.Optional(EventId('Only events behind this one.')),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: EVENT_LIMIT_MAX,
      default: EVENT_LIMIT_DEFAULT,
      description: 'How many entries at most. Of no meaning for a stream.',
    }),
  ),
};

const Types = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 512,
    description: 'Only events of this type; several with commas, for example `session.started,session.ended`.',
  }),
);

export const SessionEventsQuery = Type.Object({ ...Paging, type: Types });
export type SessionEventsQuery = Static<typeof SessionEventsQuery>;

export const EventsQuery = Type.Object({
  ...Paging,
  type: Types,
  sessionId: Type.Optional(Uuid('Only events of this session.')),
});
export type EventsQuery = Static<typeof EventsQuery>;
