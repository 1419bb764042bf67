// Browser sessions as callers see them: what may be asked at create, what is answered, with units, defaults and limits.
import { type Static, Type } from 'typebox';
import { CERTIFICATES_PER_SESSION_MAX } from './certificates.ts';
import { AnyObject, Time, Uuid, Warning } from './common.ts';
import { EXTENSIONS_PER_SESSION_MAX } from './extensions.ts';

export const TIMEOUT_DEFAULT_SECONDS = 3600;
export const TIMEOUT_MIN_SECONDS = 60;
export const TIMEOUT_MAX_SECONDS = 21_600;
export const USER_METADATA_MAX_CHARACTERS = 512;
export const SESSION_LIST_MAX = 1000;
export const VIEWPORT_DEFAULT = { width: 1280, height: 720 } as const;

/** Region names that official clients have built in. They are accepted everywhere and run in the default region. */
export const FOREIGN_REGIONS = ['us-west-2', 'us-east-1', 'eu-central-1', 'ap-southeast-1'] as const;

export const SESSION_STATUSES = ['PENDING', 'RUNNING', 'ERROR', 'TIMED_OUT', 'COMPLETED'] as const;

export const END_REASONS = [
  'released',
  'client_disconnected',
  'browser_closed',
  'timed_out',
  'connect_timeout',
  'crashed',
  'out_of_memory',
  'start_failed',
  'proxy_failed',
  'egress_limit',
  'disk_limit',
  'operator',
  'drained',
  'host_lost',
  'service_restart',
] as const;

export const SessionStatus = Type.Enum([...SESSION_STATUSES], {
  description:
    '`PENDING` the browser is starting; `RUNNING`; `COMPLETED` ended as somebody wished; `TIMED_OUT` a time limit ended it; `ERROR` it failed.',
});
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export const EndReason = Type.Enum([...END_REASONS], {
  description: 'Why the session ended; more precise than `status`.',
});
export type EndReason = (typeof END_REASONS)[number];

export const UploadedFile = Type.Object({
  fileName: Type.String({ description: 'Base name as the browser sees it.' }),
  size: Type.Integer({ description: 'Bytes.' }),
  checksum: Type.String({ description: 'SHA-256, lower-case hex.' }),
  createdAt: Time('When it was uploaded.'),
});

export const Session = Type.Object(
  {
    id: Uuid('Sorts by creation time.'),
    createdAt: Time('When it was created.'),
    updatedAt: Time('When it last changed.'),
    startedAt: Time('When the browser was ready; equal to `createdAt` while PENDING.'),
    expiresAt: Time('When its time limit ends it: `createdAt` plus `timeout`.'),
    endedAt: Type.Optional(Time('When it ended; only then present.')),
    projectId: Type.String({ description: 'The application that the session belongs to.' }),
    status: SessionStatus,
    proxyBytes: Type.Integer({ description: 'Bytes that went through proxies; 0 without.' }),
    keepAlive: Type.Boolean({ description: 'Whether it goes on when its last client has left.' }),
    region: Type.String({ description: "Where it runs: the operator's own name, `local` unless configured." }),
    contextId: Type.Optional(Uuid('The context it started from.')),
    userMetadata: Type.Optional(AnyObject('As given; `{}` if none was.')),
    connectUrl: Type.Optional(
      Type.String({
        description:
          'WebSocket address for CDP clients (Playwright `connectOverCDP`, Puppeteer `browserWSEndpoint`). Answered by create and, while PENDING or RUNNING, by read; only to keys with `browsers:connect`. Treat it as a secret.',
      }),
    ),
    seleniumRemoteUrl: Type.Optional(
      Type.String({ description: 'Present beside `connectUrl`. WebDriver is not offered here.' }),
    ),
    signingKey: Type.Optional(Type.String({ description: 'The secret in `connectUrl`. Dead when the session ends.' })),
    endReason: Type.Optional(EndReason),
    uploads: Type.Optional(Type.Array(UploadedFile, { description: 'Files uploaded into it. Answered by read only.' })),
    warnings: Type.Optional(
      Type.Array(Warning, {
        description:
          'Settings that were accepted without having their full effect. Always present in the answer to create.',
      }),
    ),
  },
  { description: 'A browser lent to a caller.' },
);
export type Session = Static<typeof Session>;

// ---- create --------------------------------------------------------------------------------------------------------

export const Viewport = Type.Object(
  {
    width: Type.Optional(
      Type.Integer({ minimum: 200, maximum: 3840, default: VIEWPORT_DEFAULT.width, description: 'Pixels.' }),
    ),
    height: Type.Optional(
      Type.Integer({ minimum: 200, maximum: 2160, default: VIEWPORT_DEFAULT.height, description: 'Pixels.' }),
    ),
  },
  { description: 'Size of the page. A side that is left out takes its default.' },
);

const ContextWish = Type.Object(
  {
    id: Uuid('A context of this application.'),
    persist: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Save the session's cookies and storage back into the context at its end.",
      }),
    ),
    exclusive: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'With `persist`: while this session lives and is saved, another one that asks for the same is refused with `context_in_use`. Others are not.',
      }),
    ),
  },
  { description: 'Stored cookies and storage to start from; the session works on a copy of its own.' },
);

const AllowedDomains = Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
  maxItems: 100,
  default: [],
  description:
    'Host names that pages are confined to, subdomains included: navigations of main frames, their redirects, and popups, by whomever they were begun. Frames and what pages load are not concerned (that is `networkPolicy`), nor are `about:`, `data:` and `chrome:` pages. What is refused fails as `ERR_BLOCKED_BY_CLIENT`. A scheme, port, path or wildcard answers 400; a leading `*.` is dropped.',
});

const ExtensionIds = Type.Array(Uuid('An uploaded extension.'), {
  maxItems: EXTENSIONS_PER_SESSION_MAX,
  default: [],
  description:
    'Uploaded extensions to load, at most 10 with those named in other places. They are loaded, and their service workers started, before the first client can connect. An unknown one answers `unknown_extension`.',
});

const ExtensionId = Uuid('One uploaded extension to load.');

const RecordSession = Type.Boolean({
  default: true,
  description: 'Keep a replay of every page. With `false` nothing is looked at and nothing is kept.',
});
const LogSession = Type.Boolean({
  default: true,
  description:
    'Keep a log of the console, the network, pages and commands. With `false` nothing is listened to and nothing is kept.',
});

const DomainPattern = Type.Optional(
  Type.String({
    maxLength: 256,
    description:
      'Regular expression (RE2 syntax) that is found in the host name: `(^|\\.)example\\.com$` is a host and its subdomains. Left out: every host.',
  }),
);

const ManagedProxy = Type.Object({
  type: Type.Literal('browserbase', { description: "The operator's proxy pool." }),
  geolocation: Type.Optional(
    Type.Object({
      country: Type.String({ pattern: '^[A-Za-z]{2}$', description: 'ISO 3166 alpha-2.' }),
      state: Type.Optional(Type.String({ pattern: '^[A-Za-z]{2}$', description: 'Two letters, US only.' })),
      city: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    }),
  ),
  domainPattern: DomainPattern,
});

const ExternalProxy = Type.Object({
  type: Type.Literal('external', { description: 'A proxy of your own.' }),
  server: Type.String({
    pattern: '^(https?|socks5)://',
    maxLength: 2048,
    description:
      '`http://host:port`, `https://host:port` or `socks5://host:port`. It resolves the names; it is tried before the browser is started.',
  }),
  username: Type.Optional(Type.String({ maxLength: 1024 })),
  password: Type.Optional(Type.String({ maxLength: 1024, description: 'Never answered, logged or recorded.' })),
  domainPattern: DomainPattern,
});

const NoProxy = Type.Object({
  type: Type.Literal('none', { description: 'Go direct.' }),
  domainPattern: DomainPattern,
});

const Proxies = Type.Union(
  [Type.Boolean(), Type.Array(Type.Union([ManagedProxy, ExternalProxy, NoProxy]), { maxItems: 20 })],
  {
    default: false,
    description:
      "Upstream proxies: `true` for the operator's own, or rules tried in order, the first that fits decides; what none fits goes direct.",
  },
);

const NetworkPolicy = Type.Object(
  {
    allow: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { maxItems: 100, default: [] })),
    deny: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { maxItems: 100, default: [] })),
    default: Type.Optional(Type.Enum(['allow', 'deny'], { default: 'allow' })),
    subresources: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          '`false`: the rules hold for documents alone, of pages and of frames in them; what these load comes from anywhere.',
      }),
    ),
  },
  {
    description:
      'Which hosts the browser may reach, for everything that leaves it: pages, frames, scripts, WebSockets, workers, prefetches, downloads. Entries are host names and stand for their subdomains; of several that fit, the longest decides, and of two equal ones `deny`.',
  },
);

const Geolocation = Type.Object(
  {
    latitude: Type.Number({ minimum: -90, maximum: 90, description: 'Degrees.' }),
    longitude: Type.Number({ minimum: -180, maximum: 180, description: 'Degrees.' }),
    accuracy: Type.Optional(Type.Number({ minimum: 0, maximum: 100_000, default: 0, description: 'Metres.' })),
  },
  { description: 'Where pages find themselves; every page may ask without a prompt.' },
);

export type BrowserSettings = Static<typeof BrowserSettings>;
export const BrowserSettings = Type.Object(
  {
    viewport: Type.Optional(Viewport),
    recordSession: Type.Optional(RecordSession),
    logSession: Type.Optional(LogSession),
    context: Type.Optional(ContextWish),
    allowedDomains: Type.Optional(AllowedDomains),
    extensionId: Type.Optional(ExtensionId),
    extensionIds: Type.Optional(ExtensionIds),
    ignoreCertificateErrors: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Turn TLS checks off for the whole session, workers included.',
      }),
    ),
    blockAds: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Block the hosts of advertisements that a list of the operator names; 422 where there is no list.',
      }),
    ),
    enablePdfViewer: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Show PDFs in the tab instead of downloading them.',
      }),
    ),
    solveCaptchas: Type.Optional(
      Type.Boolean({ description: 'Accepted for other services. There is no solver here: `true` gives a warning.' }),
    ),
    captchaImageSelector: Type.Optional(
      Type.String({ maxLength: 1024, description: 'Accepted, no effect, gives a warning.' }),
    ),
    captchaInputSelector: Type.Optional(
      Type.String({ maxLength: 1024, description: 'Accepted, no effect, gives a warning.' }),
    ),
    verified: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Not offered: `true` answers 422 (a warning on the compatibility mount).',
      }),
    ),
    advancedStealth: Type.Optional(Type.Boolean({ default: false, description: 'Old name of `verified`.' })),
    os: Type.Optional(
      Type.Enum(['windows', 'mac', 'linux', 'mobile', 'tablet'], { description: 'Only together with `verified`.' }),
    ),
    fingerprint: Type.Optional(AnyObject('Old; ignored with a warning.')),
    networkPolicy: Type.Optional(NetworkPolicy),
    timezoneId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IANA name, for example `Europe/Berlin`.',
      }),
    ),
    locale: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$',
        maxLength: 64,
        description:
          'BCP 47 tag, for example `de-DE`: languages, numbers and dates, in pages and workers. The browser’s own texts stay English.',
      }),
    ),
    userAgent: Type.Optional(
      Type.String({
        pattern: '^[\\x20-\\x7e]+$',
        maxLength: 512,
        description: 'What the browser calls itself; printable ASCII.',
      }),
    ),
    geolocation: Type.Optional(Geolocation),
    maskInputs: Type.Optional(
      Type.Enum(['password', 'all', 'none'], {
        default: 'password',
        description:
          'Which inputs recordings black out: those that are, or ever were, for passwords; all that can be typed into; or none.',
      }),
    ),
    egressBytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Budget of bytes to and from the network, headers and encryption included. The session ends as `egress_limit` when it is used up; what is under way in a tenth of a second may go beyond.',
      }),
    ),
    takeover: Type.Optional(
      Type.Enum(['queue', 'refuse'], {
        default: 'queue',
        description: "What happens to the agent's input while a human has control. Not offered yet: gives a warning.",
      }),
    ),
  },
  { description: 'How the browser behaves.', default: {} },
);

export const CreateSession = Type.Object(
  {
    projectId: Type.Optional(Type.String({ description: "Must be the agent key's application. Left out: it is." })),
    timeout: Type.Optional(
      Type.Integer({
        minimum: TIMEOUT_MIN_SECONDS,
        maximum: TIMEOUT_MAX_SECONDS,
        default: TIMEOUT_DEFAULT_SECONDS,
        description: 'Seconds from creation after which the session ends, connected or not.',
      }),
    ),
    keepAlive: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Go on when the last client has left, so that another may connect later. Without it the session ends shortly after.',
      }),
    ),
    region: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "One of the operator's regions; the first is the default. us-west-2, us-east-1, eu-central-1 and ap-southeast-1 are accepted everywhere with a warning.",
      }),
    ),
    userMetadata: Type.Optional(
      AnyObject(
        `Yours to fill, at most ${USER_METADATA_MAX_CHARACTERS} characters as JSON. Objects may be nested; no arrays. Sessions can be listed by its string values: put something unique in it to find a session whose answer was lost.`,
        { default: {} },
      ),
    ),
    extensionId: Type.Optional(ExtensionId),
    extensionIds: Type.Optional(ExtensionIds),
    proxies: Type.Optional(Proxies),
    proxySettings: Type.Optional(
      Type.Object(
        {
          caCertificates: Type.Optional(
            Type.Array(Uuid('An uploaded certificate.'), {
              maxItems: CERTIFICATES_PER_SESSION_MAX,
              default: [],
              description:
                'Uploaded certificate authorities to trust, in this session only and for direct traffic too. Names and dates are checked as ever. An unknown one answers `unknown_certificate`.',
            }),
          ),
        },
        { description: 'Trust of the session.' },
      ),
    ),
    browserSettings: Type.Optional(BrowserSettings),
    recordSession: Type.Optional(RecordSession),
    logSession: Type.Optional(LogSession),
    allowedDomains: Type.Optional(AllowedDomains),
    viewport: Type.Optional(Viewport),
    context: Type.Optional(ContextWish),
    contextId: Type.Optional(Uuid('Short for `context` with `persist` false.')),
  },
  {
    description:
      'All fields are optional; no body is fine. `recordSession`, `logSession`, `allowedDomains`, `viewport`, `context`, `extensionId` and `extensionIds` are the same here and in `browserSettings`; different values in both answer `conflicting_fields`.',
  },
);
export type CreateSession = Static<typeof CreateSession>;

// ---- list, read, update --------------------------------------------------------------------------------------------

export const SessionQuery = Type.Object({
  status: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: `Only sessions in this state; several with commas. States: ${SESSION_STATUSES.join(', ')}.`,
    }),
  ),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4096,
      description:
        "Only sessions with this string in their metadata: `user_metadata['run']:'r-1842'`. Nested: `user_metadata['a']['b']:'c'`. Several terms are joined with ` AND `; `\\'` and `\\\\` inside quotes mean themselves.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SESSION_LIST_MAX,
      default: SESSION_LIST_MAX,
      description: 'How many at most.',
    }),
  ),
  before: Type.Optional(Uuid('The page after this session. The header `x-next-before` of an answer names it.')),
});
export type SessionQuery = Static<typeof SessionQuery>;

export const UpdateSession = Type.Object(
  {
    projectId: Type.Optional(Type.String({ description: "Must be the agent key's application. Left out: it is." })),
    status: Type.Optional(
      Type.Enum(['REQUEST_RELEASE'], { description: 'Ends the session. Answered once its browser is closed.' }),
    ),
    userMetadata: Type.Optional(AnyObject('Replaces the whole. Same limits as at create.')),
    timeout: Type.Optional(
      Type.Integer({
        minimum: TIMEOUT_MIN_SECONDS,
        maximum: TIMEOUT_MAX_SECONDS,
        description: 'New total in seconds, counted from creation; not in the past.',
      }),
    ),
  },
  { description: 'Fields that are left out stay as they are; an empty body changes nothing and answers the session.' },
);
export type UpdateSession = Static<typeof UpdateSession>;

export const SessionParams = Type.Object({ id: Uuid('The session.') });

// ---- discovery of the CDP address ----------------------------------------------------------------------------------

export const ConnectQuery = Type.Object({
  signingKey: Type.Optional(Type.String({ description: "The session's own key, as in `connectUrl`." })),
});

export const BrowserVersion = Type.Object({
  Browser: Type.String({ description: 'For example `Chrome/156.0.0.0`.' }),
  'Protocol-Version': Type.String({ description: '`1.3`.' }),
  webSocketDebuggerUrl: Type.String({ description: 'The WebSocket address to use.' }),
});
export type BrowserVersion = Static<typeof BrowserVersion>;

// ---- compatibility mount -------------------------------------------------------------------------------------------

export const Project = Type.Object(
  {
    id: Type.String({ description: 'The application.' }),
    createdAt: Time('When it was created.'),
    updatedAt: Time('When it last changed.'),
    name: Type.String(),
    ownerId: Type.String({ description: 'The account that is billed.' }),
    defaultTimeout: Type.Integer({ description: 'Seconds.' }),
    concurrency: Type.Integer({ description: 'How many sessions may run at once.' }),
  },
  { description: "An application, in the official client's words." },
);
export type Project = Static<typeof Project>;

export const ProjectUsage = Type.Object({
  browserMinutes: Type.Number({ description: 'Minutes that sessions ran.' }),
  proxyBytes: Type.Integer({ description: 'Bytes through proxies.' }),
});
export type ProjectUsage = Static<typeof ProjectUsage>;

export const ProjectParams = Type.Object({ id: Uuid('The project, which is the application.') });

export const StartSession = Type.Object({
  browserbaseSessionCreateParams: Type.Optional(CreateSession),
  browserbaseSessionID: Type.Optional(Type.String({ description: 'Use this session instead of creating one.' })),
});
export type StartSession = Static<typeof StartSession>;

export const StartedSession = Type.Object({
  success: Type.Boolean(),
  data: Type.Object({
    sessionId: Type.String({ description: 'The session.' }),
    available: Type.Boolean({ description: 'Always false: the client runs its own steps.' }),
  }),
});

export const EndedSession = Type.Object({ success: Type.Boolean() });
