// Events of sessions and of applications, as a list or as a stream.
import { type Static, Type } from 'typebox';
import { AnyObject, Time, Uuid } from './common.ts';

export const EVENT_LIMIT_DEFAULT = 100;
export const EVENT_LIMIT_MAX = 1000;

/** Every type of event and its description. */
export const EVENT_DESCRIPTIONS = {
  'session.created': 'the session was accepted and has a slot',
  'session.launched': 'a browser was started for the session',
  'session.claimed': 'a warm browser was claimed for the session',
  'session.started': 'the session is running',
  'client.connected': 'a CDP client connected',
  'client.disconnected': 'a CDP client disconnected',
  'client.refused': 'a CDP client was refused because the session had reached its limit of clients',
  'session.updated': 'the metadata or the time limit was changed',
  'recording.limited': 'parts of the session are not recorded; sent once for each `reason`',
  'file.uploaded': 'a file was uploaded into the session',
  'download.completed': 'the browser finished a download, and the file is listed',
  'download.failed': 'a download was cancelled, interrupted or refused, and will not be listed',
  'recording.ready': 'the MP4 file of a page can be downloaded; `pageId` names the page',
  'recording.failed': 'the MP4 file of a page could not be made; `pageId` names the page',
  'session.adopted': 'the service restarted and continues the running session',
  'session.release_requested': 'a caller asked to end the session',
  'session.end_decided': 'the end of the session was decided; includes the reason and who decided it',
  'session.ended': 'the session has ended; only results of work after the end follow, such as a saved context',
  'session.events_limited': 'the limit of events is reached; only the end of the session will be added',
  'session.credit_low':
    'the hold of the session could not be extended; the session ends in a minute with `credit_exhausted`, unless credit is added',
  'credit.low': 'the available credit of the account is below the threshold that the operator has set',
  'credit.exhausted': 'the credit of the account was used up, and the session ends',
  'context.restored': 'the browser starts from this version of the context',
  'context.version_skipped': 'a damaged version of the context was skipped',
  'context.saved':
    'the cookies and storage of the session were saved as the newest version of the context; follows the end of the session',
  'context.saved_partially':
    'the session failed, or its browser could not be shut down cleanly; only the cookies that were copied while it was running were saved',
  'context.save_failed': 'nothing was saved; the versions of the context are unchanged',
  'context.overtaken':
    'another session, which did not start from the version that this session saved, has saved a newer version',
  'page.refused':
    'a page was closed when it was opened, because the session already had the maximum number of pages; sent at most once a second, with a count',
  'network.refused':
    'a request to a host that the session may not reach was refused; sent at most once a second for each host, with a count',
  'network.failed':
    'a host could not be reached, or did not send a valid response; `reason` says why; sent at most once a second for each host and reason, with a count',
  'navigation.refused':
    'a navigation outside `allowedDomains` was refused; sent at most once a second for each host, with a count',
  'proxy.failed': 'an upstream proxy failed; sent at most once a second for each proxy, with a count',
  'control.taken': 'a person took control',
  'control.given_back': 'the person gave control back',
  'control.expired': 'control ended because the person left without giving it back',
  'control.refused': 'a person asked for control and was refused',
  'handoff.requested': 'a person was asked to take control',
  'handoff.claimed': 'a person claimed the hand-off and has control',
  'handoff.returned': 'the person left or gave control back, and the hand-off is waiting for another person',
  'handoff.completed': 'the person ended the hand-off; `outcome` is the result',
  'handoff.cancelled': 'the hand-off was cancelled',
  'handoff.expired': 'nobody claimed the hand-off in time',
  'devtools.opened': 'a person opened DevTools on a page',
  'devtools.closed': 'DevTools was closed',
  'live.links_revoked': 'live view addresses were revoked',
  'operation.published': 'agents call this revision of the operation from now on',
  'operation.withdrawn': 'agents can no longer call the operation',
  'invocation.succeeded': 'the call of an operation has ended with an output',
  'invocation.failed': 'the call of an operation has failed; `code` is the reason',
  'invocation.ambiguous': 'the call of an operation has ended, and it is unknown whether the effect happened',
  'invocation.cancelled': 'the call of an operation was cancelled before anything was sent',
  'agent_key.revoked': 'an agent key was revoked',
  'action.prepared': 'an agent asks a person to approve a call; `approver` is the kind of person who decides',
  'action.approved': 'a person has approved the Action',
  'action.refused': 'a person has refused the Action',
  'action.expired': 'the Action was not executed in time',
  'action.executed': 'the Action is being executed; the end of the invocation is a separate event',
  'action.cancelled': 'the Action was cancelled; `why` is the reason',
  'consumer.session.started': 'a consumer has signed in',
  'consumer.session.ended': 'a consumer has signed out of one session, or of all',
  'consumer.session.replayed': 'a code or refresh token was sent a second time, so its session was ended',
  'consumer.deleted': 'a consumer has deleted their profile',
  'consumer.linked': 'two consumers were linked; `linkedId` is the consumer that was merged into the other',
  'memory.written': 'a consumer or an agent has written to the memory of a consumer',
  'memory.deleted': 'a consumer has deleted items of the memory',
  'memory.consented': 'a consumer has allowed agents to use the memory',
  'memory.consent_revoked': 'a consumer has withdrawn a consent',
} as const;
export type EventType = keyof typeof EVENT_DESCRIPTIONS;
export const EVENT_TYPES = Object.keys(EVENT_DESCRIPTIONS) as readonly EventType[]; // Object.keys() returns strings.

export const ACTOR_KINDS = [
  'agentKey',
  'client',
  'clock',
  'operator',
  'service',
  'browser',
  'viewer',
  'account',
  'consumer',
] as const;

const EventId = (description: string) => Type.String({ pattern: '^[0-9]{1,16}$', description });

export const SessionEvent = Type.Object(
  {
    id: EventId(
      'Ids sort in the order in which events can be read. Pass an id as `after`, or as `Last-Event-ID`, to continue after that event.',
    ),
    sessionId: Type.Optional(Uuid('Id of the session. Absent if the event belongs to no session.')),
    type: Type.Enum([...EVENT_TYPES], {
      description: Object.entries(EVENT_DESCRIPTIONS)
        .map(([type, meaning]) => `\`${type}\`: ${meaning}.`)
        .join(' '),
    }),
    time: Time('When the event happened.'),
    actor: Type.Object(
      {
        kind: Type.Enum([...ACTOR_KINDS], {
          description:
            '`agentKey`: a caller of this API. `client`: a CDP connection. `clock`: a time limit. `operator`: the operator. `service`: Berth. `browser`: Chromium. `viewer`: a person in a live view. `account`: a member of the application. `consumer`: an end user of the application.',
        }),
        id: Type.Optional(Type.String({ description: 'Id of the agent key, account or consumer.' })),
      },
      { description: 'Who caused the event.' },
    ),
    detail: AnyObject(
      'Facts that depend on the type. Creates: `warnings`, if there were any. Ends: `reason` and `status`. Clients: `clients`, the number connected, and `why` the service closed a connection. Starts: `tookMs`. Updates: the fields that changed. Refusals: `hostname`, `rule`, `count` since the previous event and `total`. Contexts: `contextId` and `version`. Operations: `operationId`, `kind` and `revision`. Invocations: `invocationId`, `operationId`, `revision`, `sessionId` and `attempts`. Hand-offs: `handoffId`. Actions: `jobId`, `operationId` and `digest`. Consumers: `consumerId`. No event contains an input, an output or the words of an agent.',
    ),
  },
  { description: 'An event of a session, or of the application.' },
);
export type SessionEvent = Static<typeof SessionEvent>;

export const SessionEventPage = Type.Object({
  data: Type.Array(SessionEvent, { description: 'Oldest first.' }),
  nextCursor: Type.Optional(Type.String({ description: 'Present if there are more events. Pass it as `after`.' })),
});
export type SessionEventPage = Static<typeof SessionEventPage>;

const PAGING_FIELDS = {
  after: Type.Optional(EventId('Return only events after this event.')),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: EVENT_LIMIT_MAX,
      default: EVENT_LIMIT_DEFAULT,
      description: 'Maximum number of events to return. Ignored for a stream.',
    }),
  ),
};

const EventTypeFilter = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 512,
    description:
      'Return only events of this type. Separate several with commas, for example `session.started,session.ended`.',
  }),
);

const PERIOD_FIELDS = {
  from: Type.Optional(Time('Return only events of this time or later.')),
  to: Type.Optional(Time('Return only events before this time.')),
};

export const SessionEventsQuery = Type.Object({ ...PAGING_FIELDS, ...PERIOD_FIELDS, type: EventTypeFilter });
export type SessionEventsQuery = Static<typeof SessionEventsQuery>;

export const EventsQuery = Type.Object({
  ...PAGING_FIELDS,
  ...PERIOD_FIELDS,
  type: EventTypeFilter,
  sessionId: Type.Optional(Uuid('Return only events of this session.')),
});
export type EventsQuery = Static<typeof EventsQuery>;
