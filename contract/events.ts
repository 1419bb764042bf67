// What happened to sessions, as callers read it: as a list, or as it happens.
import { type Static, Type } from 'typebox';
import { AnyObject, Time, Uuid } from './common.ts';

export const EVENT_LIMIT_DEFAULT = 100;
export const EVENT_LIMIT_MAX = 1000;

/** Every type of event, and what it tells. */
export const EVENTS = {
  'session.created': 'it was asked for, and has its place',
  'session.launched': 'a browser was started for it',
  'session.claimed': 'it got a browser that waited',
  'session.started': 'it runs',
  'client.connected': 'a CDP client is there',
  'client.disconnected': 'one has left',
  'client.refused': 'one found no place',
  'session.updated': 'its metadata or time limit was changed',
  'recording.limited': 'not all of it is recorded; told once for each `reason`',
  'file.uploaded': 'a file was uploaded into it',
  'download.completed': 'its browser has downloaded a file, which is listed now',
  'download.failed': 'a download was cancelled, cut off or refused, and is never listed',
  'session.adopted': 'a restarted service took it over',
  'session.release_requested': 'a caller asked for its end',
  'session.end_decided': 'why it ends, and who decided',
  'session.ended': 'it has ended; only what is settled afterwards follows',
  'session.events_limited': 'there were too many events; only the end is still told',
  'context.restored': 'its browser starts from this version of the context',
  'context.version_skipped': 'a damaged version was passed over',
  'context.saved': 'what it left is the newest version of the context; comes after its end',
  'context.saved_partially': 'it failed, and only the cookies copied aside while it ran were saved',
  'context.save_failed': 'nothing was saved, and the earlier version stands',
  'context.overtaken': 'a session that had not started from what this one saved has replaced it',
  'network.refused': 'a host that the session may not reach; each host is told at most once a second, with how often',
  'navigation.refused': 'a page outside its `allowedDomains`, told as seldom',
  'proxy.failed': 'a proxy that did not serve, told as seldom',
  'control.taken': 'a person drives from here on',
  'control.given_back': 'they gave it back',
  'control.expired': 'they left without giving it back',
  'control.refused': 'a person wanted to, and could not',
  'devtools.opened': 'a person opened DevTools on a page',
  'devtools.closed': 'they closed it, or it was closed',
  'live.links_revoked': 'live view addresses stopped working',
} as const;
export type EventType = keyof typeof EVENTS;
export const EVENT_TYPES = Object.keys(EVENTS) as readonly EventType[]; // TypeScript widens the keys

export const ACTOR_KINDS = ['agentKey', 'client', 'clock', 'operator', 'service', 'browser', 'viewer'] as const;

const EventId = (description: string) => Type.String({ pattern: '^[0-9]{1,16}$', description });

export const SessionEvent = Type.Object(
  {
    id: EventId(
      'Sorts by the order in which events can be read. Pass it as `after`, or as `Last-Event-ID`, to go on behind it.',
    ),
    sessionId: Uuid('The session.'),
    type: Type.Enum([...EVENT_TYPES], {
      description: Object.entries(EVENTS)
        .map(([type, meaning]) => `\`${type}\`: ${meaning}.`)
        .join(' '),
    }),
    time: Time('When it happened.'),
    actor: Type.Object(
      {
        kind: Type.Enum([...ACTOR_KINDS], {
          description:
            '`agentKey` a caller of this API, `client` a CDP connection, `clock` a time limit, `operator`, `service` Berth itself, `browser` Chromium, `viewer` a person in a live view.',
        }),
        id: Type.Optional(Type.String({ description: 'With `agentKey`: id of the key.' })),
      },
      { description: 'Who did it.' },
    ),
    detail: AnyObject(
      'Facts, by type: `reason` and `status` of an end, `clients` that are connected, `why` one was disconnected that did not leave by itself, `tookMs` of a start, what was updated; `hostname`, `rule`, `count` since last told and `total` of a refusal; `contextId` and `version`.',
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
