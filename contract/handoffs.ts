// Hand-offs: a person gets control of a session for a limited time. The control is a lease with a fence, a number that
// increases each time control of the session changes.
import { type Static, Type } from 'typebox';
import { EndUser } from './actions.ts';
import { AnyObject, PageQuery, Page as PageSchema, Time, Uuid, Warning } from './common.ts';

export const INSTRUCTIONS_CHARACTERS_MAX = 1_000;
/** Number of characters of the instructions that are shown to people before they take control. */
export const INSTRUCTIONS_SHOWN_CHARACTERS_MAX = 280;
export const TTL_SECONDS_MIN = 30;
export const TTL_SECONDS_MAX = 3_600;
export const TTL_SECONDS_DEFAULT = 600;
export const LEASE_SECONDS_MIN = 30;
export const LEASE_SECONDS_MAX = 900;
export const LEASE_SECONDS_DEFAULT = 120;
export const NOTE_CHARACTERS_MAX = 1_000;
const ORIGINS_MAX = 20;
export const HANDOFF_WAIT_SECONDS_MAX = 55;
/** Number of days for which a hand-off can be read after it has ended. */
export const HANDOFF_RETENTION_DAYS = 90;

export const HANDOFF_STATUSES = [
  'requested',
  'claimed',
  'completed',
  'declined',
  'failed',
  'cancelled',
  'expired',
  'session_ended',
] as const;
export type HandoffStatus = (typeof HANDOFF_STATUSES)[number];

export const HANDOFF_REASONS = ['login', 'otp', 'captcha', 'payment', 'consent', 'review', 'other'] as const;
export const HANDOFF_ORIGINS = ['api', 'cdp', 'operation', 'viewer'] as const;
export const HANDOFF_RECORD_MODES = ['mask', 'keep', 'pause'] as const;
export const HANDOFF_OUTCOMES = ['completed', 'declined', 'failed'] as const;
export type HandoffOutcome = (typeof HANDOFF_OUTCOMES)[number];

const Status = Type.Enum([...HANDOFF_STATUSES], {
  description:
    '`requested`: waiting for a person. `claimed`: a person has control. `completed`, `declined` and `failed`: as reported by the person. `expired`: nobody claimed it in time. `session_ended`: the session ended first.',
});
const Reason = Type.Enum([...HANDOFF_REASONS], { description: 'What the page requires the person to do.' });
const RECORD_DESCRIPTION =
  '`mask`: while a person has control, frames are black for everybody else and in the recording, the log has no query strings, headers or console messages, and agent commands that read pages wait. `pause`: as with `mask`, and nothing is recorded. `keep`: recorded and readable as usual; requires that the agent key of the session has the scope `browsers:files`.';
const Seconds = (minimum: number, maximum: number, defaultSeconds: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, default: defaultSeconds, description }));

/** The fields of a hand-off request, apart from the session. */
export const HandoffTerms = Type.Object(
  {
    instructions: Type.String({
      minLength: 1,
      maxLength: INSTRUCTIONS_CHARACTERS_MAX,
      description: `What the person is asked to do, as plain text. The first ${INSTRUCTIONS_SHOWN_CHARACTERS_MAX} characters are shown before the person takes control.`,
    }),
    reason: Type.Optional(Reason),
    ttlSeconds: Seconds(
      TTL_SECONDS_MIN,
      TTL_SECONDS_MAX,
      TTL_SECONDS_DEFAULT,
      'Seconds for which the hand-off waits for a person. Shortened, with a warning, if the session ends earlier.',
    ),
    leaseSeconds: Seconds(
      LEASE_SECONDS_MIN,
      LEASE_SECONDS_MAX,
      LEASE_SECONDS_DEFAULT,
      'Seconds after which control ends unless the person renews it. The page of the hand-off renews it automatically.',
    ),
    claimableBy: Type.Optional(
      Type.Union(
        [
          Type.Array(Type.Enum(['members', 'link']), {
            minItems: 1,
            maxItems: 1,
            description:
              '`members`: a member of the application with the role developer or higher. `link`: anyone who has the link in the response. The link works once, in one browser.',
          }),
          Type.Object(
            { endUser: EndUser },
            {
              additionalProperties: false,
              description: 'This end user can claim the hand-off, on the page at `claimUrl` in the response.',
            },
          ),
        ],
        { default: ['members'], description: 'Who can claim the hand-off.' },
      ),
    ),
    pageId: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'CDP target id of the page that is shown first.' }),
    ),
    allowedOrigins: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^https?://[^/?#@]+$',
          maxLength: 300,
          description: 'An origin, for example `https://example.com`.',
        }),
        {
          minItems: 1,
          maxItems: ORIGINS_MAX,
          description:
            'Pages of other origins are not opened while the person has control. Frames inside a page may have any origin. Default: no restriction.',
        },
      ),
    ),
    record: Type.Optional(Type.Enum([...HANDOFF_RECORD_MODES], { default: 'mask', description: RECORD_DESCRIPTION })),
    callbackEvent: Type.Optional(
      Type.String({
        pattern: '^[a-z][a-z0-9_.-]{0,63}$',
        description:
          'A name that you choose. It is included in the events of the hand-off, in `Berth.handoffComplete` and in webhooks, so that a program can continue the right work.',
      }),
    ),
    extendSession: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Extend the session if it would end before the hand-off expires, as far as the limits of the application allow.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type HandoffTerms = Static<typeof HandoffTerms>;

export const RequestHandoff = Type.Object(
  { sessionId: Uuid('The running session.'), ...HandoffTerms.properties },
  { additionalProperties: false },
);
export type RequestHandoff = Static<typeof RequestHandoff>;

const HandoffActor = Type.Object(
  {
    kind: Type.Enum(['agent_key', 'account', 'client', 'link', 'consumer', 'viewer'], {
      description:
        '`client`: a CDP connection without a key of its own. `link`: the person who opened the claim link. `viewer`: a person in a live view.',
    }),
    id: Type.Optional(Type.String({ description: 'Id of the agent key, account or consumer.' })),
  },
  { description: 'A program or a person.' },
);

export const Handoff = Type.Object(
  {
    id: Uuid('Id of the hand-off.'),
    applicationId: Uuid('Id of the application.'),
    sessionId: Uuid('Id of the session.'),
    origin: Type.Enum([...HANDOFF_ORIGINS], {
      description:
        '`api`: requested over this API. `cdp`: with `Berth.handoff`. `operation`: by an operation. `viewer`: a viewer took control in the live view without being asked.',
    }),
    status: Status,
    instructions: Type.String({ description: 'What the person is asked to do. Empty if a viewer took control.' }),
    reason: Reason,
    claimableBy: Type.Array(Type.String(), {
      description: 'Who may claim the hand-off: `members`, `link` or `end_user`, or `viewer` if a viewer took control.',
    }),
    consumerId: Type.Optional(
      Type.String({ description: 'For `end_user`, the id of the consumer whom the hand-off names.' }),
    ),
    record: Type.Enum([...HANDOFF_RECORD_MODES], { description: RECORD_DESCRIPTION }),
    pageId: Type.Optional(Type.String({ description: 'CDP target id of the page that is shown first.' })),
    allowedOrigins: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Origins of the documents that may be loaded while a person has control.',
      }),
    ),
    leaseSeconds: Type.Integer({
      description: 'Seconds after which the person loses control unless the control is renewed.',
    }),
    fence: Type.Integer({ description: 'Increases each time control of the session changes.' }),
    requestedBy: HandoffActor,
    holder: Type.Optional(HandoffActor),
    createdAt: Time('When the hand-off was requested.'),
    expiresAt: Time('When the hand-off stops waiting for a person.'),
    claimedAt: Type.Optional(Time('When the person who has control, or had it last, took control.')),
    leaseExpiresAt: Type.Optional(Time('When control ends unless it is renewed.')),
    endedAt: Type.Optional(Time('When the hand-off ended.')),
    note: Type.Optional(Type.String({ description: 'The message from the person who had control. Untrusted text.' })),
    evidence: Type.Optional(AnyObject('Facts that the person or the page of the hand-off added. Untrusted.')),
    url: Type.Optional(
      Type.String({
        description:
          'Address of the page when the hand-off ended, without its query and fragment. Text that was typed since the service started is replaced by `[redacted]`. If the session has no log, the path is left out, too.',
      }),
    ),
    claimUrl: Type.Optional(
      Type.String({
        description:
          'Only in the response to a request with `link` or an end user: the address to give to that person. The secret of a link is shown once; the address for an end user has no secret.',
      }),
    ),
    applicationName: Type.Optional(
      Type.String({ description: 'Name of the application. Present only when a person reads a single hand-off.' }),
    ),
    pageOrigin: Type.Optional(
      Type.String({
        description:
          'Origin of the page that is shown first. Present only when a person reads an open hand-off. In a list, present only if it is known without a request to the browser.',
      }),
    ),
    callbackEvent: Type.Optional(Type.String({ description: 'The `callbackEvent` of the request.' })),
    warnings: Type.Optional(Type.Array(Warning, { description: 'Changes that the service made to the request.' })),
  },
  { description: 'A hand-off of a session to a person.' },
);
export type Handoff = Static<typeof Handoff>;

export const HandoffPage = PageSchema(Handoff, 'Newest first.');
export type HandoffPage = Static<typeof HandoffPage>;

export const HandoffsQuery = Type.Object({
  ...PageQuery.properties,
  status: Type.Optional(Status),
  sessionId: Type.Optional(Uuid('Only hand-offs of this session.')),
});
export type HandoffsQuery = Static<typeof HandoffsQuery>;

export const HandoffQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: HANDOFF_WAIT_SECONDS_MAX,
      default: 0,
      description: 'Seconds to wait for the status to change.',
    }),
  ),
});
export type HandoffQuery = Static<typeof HandoffQuery>;

export const HandoffParams = Type.Object({ appId: Uuid('Id of the application.'), id: Uuid('Id of the hand-off.') });

export const ClaimedHandoff = Type.Object(
  {
    handoffId: Uuid('Id of the hand-off.'),
    leaseToken: Type.String({ description: 'Credential of the person in control, `bhl_…`. Shown once.' }),
    fence: Type.Integer({ description: 'Fence of this lease.' }),
    leaseExpiresAt: Time('When control ends unless it is renewed.'),
    liveViewUrl: Type.String({
      description: 'Address of the live view, with control of the browser. It works until the lease ends.',
    }),
    instructions: Type.String({ description: 'What the person is asked to do.' }),
    allowedOrigins: Type.Optional(Type.Array(Type.String(), { description: 'Origins that may be opened.' })),
  },
  { description: 'The lease of a hand-off.' },
);
export type ClaimedHandoff = Static<typeof ClaimedHandoff>;

export const CompleteHandoff = Type.Object(
  {
    outcome: Type.Enum([...HANDOFF_OUTCOMES], {
      description: '`completed`: done. `declined`: the person refused. `failed`: it was not possible.',
    }),
    note: Type.Optional(Type.String({ maxLength: NOTE_CHARACTERS_MAX, description: 'A message for the agent.' })),
    evidence: Type.Optional(AnyObject('Facts for the agent. At most 4 KiB.')),
  },
  { additionalProperties: false },
);
export type CompleteHandoff = Static<typeof CompleteHandoff>;
