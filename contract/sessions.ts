// Browser sessions as callers see them: settings of a create request and fields of the response, with units, defaults
// and limits.
import { type Static, Type } from 'typebox';
import { CERTIFICATES_PER_SESSION_MAX } from './certificates.ts';
import { AnyObject, Time, Uuid, Warning } from './common.ts';
import { EXTENSIONS_PER_SESSION_MAX } from './extensions.ts';

export const TIMEOUT_DEFAULT_SECONDS = 3600;
export const TIMEOUT_MIN_SECONDS = 60;
export const TIMEOUT_MAX_SECONDS = 21_600;
export const USER_METADATA_CHARACTERS_MAX = 512;
export const SESSION_LIST_MAX = 1000;
export const VIEWPORT_DEFAULT = { width: 1280, height: 720 } as const;

/** Names of regions that are built into official clients. They are accepted everywhere and mean the default region. */
export const COMPAT_REGIONS = ['us-west-2', 'us-east-1', 'eu-central-1', 'ap-southeast-1'] as const;

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
  'egress_limit',
  'disk_limit',
  'operator',
  'drained',
  'service_restart',
  'host_lost',
  'credit_exhausted',
] as const;

export const SessionStatus = Type.Enum([...SESSION_STATUSES], {
  description:
    '`PENDING`: the browser is starting. `RUNNING`: it accepts clients. `COMPLETED`: it ended normally, by a release or a disconnect. `TIMED_OUT`: a time limit ended it. `ERROR`: it failed.',
});
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export const EndReason = Type.Enum([...END_REASONS], {
  description: 'Why the session ended. More precise than `status`.',
});
export type EndReason = (typeof END_REASONS)[number];

/** The browsers that a session can run: see docs/engines.md. */
export const ENGINES = ['chromium', 'headless-shell'] as const;
export type Engine = (typeof ENGINES)[number];

const ENGINE_DESCRIPTION =
  '`chromium`: the whole browser. `headless-shell`: the same version of Chromium without its user interface; it uses less processor time to start and about 60 % of the memory, but has no extensions, no PDF viewer and no additional certificate authorities.';

export const UploadedFile = Type.Object({
  fileName: Type.String({ description: 'File name, without a folder, as the browser sees it.' }),
  size: Type.Integer({ description: 'Size in bytes.' }),
  checksum: Type.String({ description: 'SHA-256 in lower-case hexadecimal.' }),
  createdAt: Time('When the file was uploaded.'),
});

export const SessionUsage = Type.Object(
  {
    cpuSeconds: Type.Optional(
      Type.Number({
        description:
          'Processor time of the browser and all its processes, including the start. Absent if the host does not measure it.',
      }),
    ),
    peakMemoryBytes: Type.Optional(
      Type.Integer({
        description: 'Peak memory use of the browser, including cached files. Absent if the host does not measure it.',
      }),
    ),
    bytesReceived: Type.Integer({ description: 'Bytes received from the network, including headers and encryption.' }),
    bytesSent: Type.Integer({ description: 'Bytes sent to the network, including headers and encryption.' }),
    recordedSeconds: Type.Number({ description: 'Total length of the stored recordings of all pages.' }),
  },
  {
    description:
      'Resources that the session has used until now, or in total after it has ended. If the server was killed, the byte counts may not include up to ten seconds before that. Returned by read only; absent for sessions that ended before Berth measured this.',
  },
);
export type SessionUsage = Static<typeof SessionUsage>;

export const LastPage = Type.Object(
  {
    url: Type.String({
      description:
        'Address of the page, at most 2048 characters. Values that look like credentials, and distinctive text that a client typed, are replaced by `[redacted]`. The address has no query and no fragment if it may contain typed text that the server does not know: in a session without a log (`logSession` is false), after a masked hand-off, and sometimes after a restart of the server.',
    }),
    title: Type.String({
      description:
        'Title of the page, at most 300 characters, redacted like the address. May be empty, and is always empty if the address has no query and no fragment for the reason given there.',
    }),
  },
  {
    description:
      'The page that was most recently opened, or whose address or title most recently changed. Updated with a delay of a few seconds while the session is running. Absent until there is a page with an http or https address. The texts come from the page: do not trust them.',
  },
);

export const Session = Type.Object(
  {
    id: Uuid('Id of the session. Ids sort by creation time.'),
    createdAt: Time('When the session was created.'),
    updatedAt: Time('When the session last changed.'),
    startedAt: Time('When the browser was ready. Equal to `createdAt` while the status is PENDING.'),
    expiresAt: Time('When the time limit ends the session: `createdAt` plus `timeout`.'),
    endedAt: Type.Optional(Time('When the session ended. Absent until then.')),
    projectId: Type.String({ description: 'The application that the session belongs to.' }),
    status: SessionStatus,
    proxyBytes: Type.Integer({ description: 'Bytes sent and received through upstream proxies. 0 without proxies.' }),
    keepAlive: Type.Boolean({
      description: 'Whether the session keeps running after its last client has disconnected.',
    }),
    region: Type.String({
      description: 'The region that the session runs in, as the operator named it. `local` unless configured.',
    }),
    contextId: Type.Optional(Uuid('The context that the session started from.')),
    userMetadata: Type.Optional(AnyObject('Metadata as given at create or update. `{}` if none was given.')),
    connectUrl: Type.Optional(
      Type.String({
        description:
          'WebSocket address for CDP clients (Playwright `connectOverCDP`, Puppeteer `browserWSEndpoint`). Returned by create and, while the session is PENDING or RUNNING, by read. Returned only to keys with the scope `browsers:connect`. Treat it as a secret.',
      }),
    ),
    seleniumRemoteUrl: Type.Optional(
      Type.String({
        description: 'Present together with `connectUrl`, for official clients. Berth does not support WebDriver.',
      }),
    ),
    signingKey: Type.Optional(
      Type.String({ description: 'The secret in `connectUrl`. Not valid after the session has ended.' }),
    ),
    endReason: Type.Optional(EndReason),
    endDetail: Type.Optional(Type.String({ description: 'Human-readable explanation of why the session ended.' })),
    keyId: Type.Optional(Uuid('The agent key that created the session. Absent if the key was deleted.')),
    browserSettings: Type.Optional(
      AnyObject(
        'The browser settings that are in effect, with defaults. `allowedDomains`, `networkPolicy`, `context` and `extensionIds` are present only if they were set. Returned by read only.',
      ),
    ),
    uploads: Type.Optional(
      Type.Array(UploadedFile, { description: 'Files uploaded into the session. Returned by read only.' }),
    ),
    lastPage: Type.Optional(LastPage),
    usage: Type.Optional(SessionUsage),
    warnings: Type.Optional(
      Type.Array(Warning, {
        description: 'Settings that were accepted but do not have their full effect. Returned by create and read.',
      }),
    ),
  },
  { description: 'A browser session: one browser, isolated from all others, for a limited time.' },
);
export type Session = Static<typeof Session>;

// ---- create --------------------------------------------------------------------------------------------------------

export const Viewport = Type.Object(
  {
    width: Type.Optional(
      Type.Integer({ minimum: 200, maximum: 3840, default: VIEWPORT_DEFAULT.width, description: 'Width in pixels.' }),
    ),
    height: Type.Optional(
      Type.Integer({ minimum: 200, maximum: 2160, default: VIEWPORT_DEFAULT.height, description: 'Height in pixels.' }),
    ),
  },
  { description: 'Size of the page in CSS pixels. An omitted width or height has its default value.' },
);

const ContextOptions = Type.Object(
  {
    id: Uuid('Id of a context of this application.'),
    persist: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Save the session's cookies and storage to the context when the session ends.",
      }),
    ),
    exclusive: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'With `persist`: until this session has ended and its data has been saved, other creates that set `exclusive` for the same context are refused with `context_in_use`. Creates without `exclusive` are not refused.',
      }),
    ),
  },
  { description: 'Stored cookies and storage to start from. The session works on its own copy.' },
);

const AllowedDomains = Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
  maxItems: 100,
  default: [],
  description:
    'Host names that pages may navigate to, including their subdomains. Applies to navigations of main frames, their redirects and popups, whether a client, a page or a person starts them. Does not apply to inner frames and subresources (use `networkPolicy` for those), nor to `about:`, `data:` and `chrome:` pages. A refused navigation fails with `ERR_BLOCKED_BY_CLIENT`. An entry with a scheme, port, path or wildcard is refused with 400; a leading `*.` is dropped.',
});

const ExtensionIds = Type.Array(Uuid('Id of an uploaded extension.'), {
  maxItems: EXTENSIONS_PER_SESSION_MAX,
  default: [],
  description:
    'Uploaded extensions to load, at most 10 together with those in the other extension fields. They are loaded, and their service workers are started, before the first client can connect. An unknown id is refused with `unknown_extension`.',
});

const ExtensionId = Uuid('Id of one uploaded extension to load.');

const RecordSession = Type.Boolean({
  default: true,
  description: 'Record every page for replay. With `false` nothing is captured and nothing is stored.',
});
const LogSession = Type.Boolean({
  default: true,
  description:
    'Keep a log of console messages, network requests, page events and client commands. With `false` nothing is observed and nothing is stored.',
});

const DomainPattern = Type.Optional(
  Type.String({
    maxLength: 256,
    description:
      'Regular expression (RE2 syntax) to search for in the host name: `(^|\\.)example\\.com$` matches a host and its subdomains. Defaults to every host.',
  }),
);

const ManagedProxy = Type.Object({
  type: Type.Literal('browserbase', { description: "The operator's proxy pool." }),
  geolocation: Type.Optional(
    Type.Object({
      country: Type.String({ pattern: '^[A-Za-z]{2}$', description: 'ISO 3166-1 alpha-2 code.' }),
      state: Type.Optional(Type.String({ pattern: '^[A-Za-z]{2}$', description: 'Two-letter code. US only.' })),
      city: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    }),
  ),
  domainPattern: DomainPattern,
});

const ExternalProxy = Type.Object({
  type: Type.Literal('external', { description: 'Your own proxy.' }),
  server: Type.String({
    pattern: '^(https?|socks5)://',
    maxLength: 2048,
    description:
      '`http://host:port`, `https://host:port` or `socks5://host:port`. The proxy resolves host names. Its connection is tested before the browser starts.',
  }),
  username: Type.Optional(Type.String({ maxLength: 1024 })),
  password: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Password for the proxy. Never returned, logged or recorded.' }),
  ),
  domainPattern: DomainPattern,
});

const NoProxy = Type.Object({
  type: Type.Literal('none', { description: 'Connect directly, without a proxy.' }),
  domainPattern: DomainPattern,
});

const Proxies = Type.Union(
  [Type.Boolean(), Type.Array(Type.Union([ManagedProxy, ExternalProxy, NoProxy]), { maxItems: 20 })],
  {
    default: false,
    description:
      "Upstream proxies. `true` uses the operator's proxy pool. A list holds rules that are tried in order: the first rule that matches the host applies, and hosts that match no rule are reached directly.",
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
          'With `false` the rules apply only to the documents of pages and frames. Their subresources may come from any host.',
      }),
    ),
  },
  {
    description:
      'Which hosts the browser may reach. Applies to all of its traffic: pages, frames, scripts, WebSockets, workers, prefetches and downloads. Entries are host names and include their subdomains. If several entries match, the longest applies; if `allow` and `deny` name the same host, `deny` applies.',
  },
);

const Geolocation = Type.Object(
  {
    latitude: Type.Number({ minimum: -90, maximum: 90, description: 'Latitude in degrees.' }),
    longitude: Type.Number({ minimum: -180, maximum: 180, description: 'Longitude in degrees.' }),
    accuracy: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100_000, default: 1, description: 'Accuracy in meters.' }),
    ),
  },
  { description: 'Position that pages see. Every page may read it without a permission prompt.' },
);

export type BrowserSettings = Static<typeof BrowserSettings>;
export const BrowserSettings = Type.Object(
  {
    engine: Type.Optional(
      Type.Enum([...ENGINES], {
        description: `The browser program to run. Defaults to the one that the operator has set, which is \`chromium\` unless changed. ${ENGINE_DESCRIPTION} A setting that the engine does not support is refused with 422, as is an engine that is not installed.`,
      }),
    ),
    viewport: Type.Optional(Viewport),
    recordSession: Type.Optional(RecordSession),
    logSession: Type.Optional(LogSession),
    context: Type.Optional(ContextOptions),
    allowedDomains: Type.Optional(AllowedDomains),
    extensionId: Type.Optional(ExtensionId),
    extensionIds: Type.Optional(ExtensionIds),
    ignoreCertificateErrors: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Turn off TLS certificate checks for the whole session, including workers.',
      }),
    ),
    blockAds: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Block advertising hosts on the list that the operator has configured. Refused with 422 if there is no list.',
      }),
    ),
    enablePdfViewer: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Show PDF files in the tab instead of downloading them.',
      }),
    ),
    solveCaptchas: Type.Optional(
      Type.Boolean({
        description:
          'Accepted for compatibility. Berth has no CAPTCHA solver: `true` has no effect and returns a warning.',
      }),
    ),
    captchaImageSelector: Type.Optional(
      Type.String({ maxLength: 1024, description: 'Accepted for compatibility. Has no effect and returns a warning.' }),
    ),
    captchaInputSelector: Type.Optional(
      Type.String({ maxLength: 1024, description: 'Accepted for compatibility. Has no effect and returns a warning.' }),
    ),
    verified: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Not supported. `true` is refused with 422; on the compatibility mount it returns a warning.',
      }),
    ),
    advancedStealth: Type.Optional(Type.Boolean({ default: false, description: 'Former name of `verified`.' })),
    os: Type.Optional(
      Type.Enum(['windows', 'mac', 'linux', 'mobile', 'tablet'], {
        description: 'Only used together with `verified`.',
      }),
    ),
    fingerprint: Type.Optional(AnyObject('Deprecated. Ignored with a warning.')),
    networkPolicy: Type.Optional(NetworkPolicy),
    timezoneId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IANA time zone, for example `Europe/Berlin`.',
      }),
    ),
    locale: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$',
        maxLength: 64,
        description:
          'BCP 47 language tag, for example `de-DE`. Sets languages, number formats and date formats in pages and workers. The user interface of the browser stays English.',
      }),
    ),
    userAgent: Type.Optional(
      Type.String({
        pattern: '^[\\x20-\\x7e]+$',
        maxLength: 512,
        description: 'User agent string. Printable ASCII.',
      }),
    ),
    geolocation: Type.Optional(Geolocation),
    maskInputs: Type.Optional(
      Type.Enum(['password', 'all', 'none'], {
        default: 'password',
        description:
          'Which input fields are blacked out in recordings. `password`: fields that are, or once were, password fields. `all`: every field that accepts typing. `none`: no field.',
      }),
    ),
    egressBytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Maximum number of bytes sent to and received from the network, including headers and encryption. When the number is reached, the session ends with the reason `egress_limit`. Usage is checked every 100 ms, so slightly more may be transferred.',
      }),
    ),
    takeover: Type.Optional(
      Type.Enum(['queue', 'refuse'], {
        default: 'queue',
        description:
          'What happens to input of CDP clients while a person has control. `queue`: the input waits until the person gives control back. `refuse`: the input is refused at once.',
      }),
    ),
  },
  { description: 'How the browser behaves.', default: {} },
);

export const CreateSession = Type.Object(
  {
    projectId: Type.Optional(
      Type.String({ description: 'Id of the application. Must be that of the agent key, which is the default.' }),
    ),
    timeout: Type.Optional(
      Type.Integer({
        minimum: TIMEOUT_MIN_SECONDS,
        maximum: TIMEOUT_MAX_SECONDS,
        default: TIMEOUT_DEFAULT_SECONDS,
        description:
          'Time limit of the session in seconds, counted from its creation. It applies whether or not a client is connected.',
      }),
    ),
    keepAlive: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Keep the session running after its last client has disconnected, so that another client can connect later. Without it the session ends shortly after the disconnect.',
      }),
    ),
    region: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "One of the operator's regions. Defaults to the first. `us-west-2`, `us-east-1`, `eu-central-1` and `ap-southeast-1` are always accepted: if the operator has no such region, the session runs in the default region and a warning is returned.",
      }),
    ),
    userMetadata: Type.Optional(
      AnyObject(
        `Your own data, at most ${USER_METADATA_CHARACTERS_MAX} characters as JSON. Objects may be nested; arrays are not allowed. Sessions can be listed by its string values: include a unique value to find a session whose response was lost.`,
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
            Type.Array(Uuid('Id of an uploaded certificate.'), {
              maxItems: CERTIFICATES_PER_SESSION_MAX,
              default: [],
              description:
                'Uploaded certificate authorities to trust in this session, for proxied and direct traffic. Host names and validity dates are still checked. An unknown id is refused with `unknown_certificate`.',
            }),
          ),
        },
        { description: 'TLS trust settings of the session.' },
      ),
    ),
    browserSettings: Type.Optional(BrowserSettings),
    recordSession: Type.Optional(RecordSession),
    logSession: Type.Optional(LogSession),
    allowedDomains: Type.Optional(AllowedDomains),
    viewport: Type.Optional(Viewport),
    context: Type.Optional(ContextOptions),
    contextId: Type.Optional(Uuid('Id of a context. Short form of `context` with `persist` false.')),
  },
  {
    description:
      'All fields are optional, and the body may be omitted. `recordSession`, `logSession`, `allowedDomains`, `viewport`, `context`, `extensionId` and `extensionIds` mean the same here and in `browserSettings`. Extensions of both places are loaded. For the other fields, different values in both places are refused with `conflicting_fields`.',
  },
);
export type CreateSession = Static<typeof CreateSession>;

// ---- list, read, update --------------------------------------------------------------------------------------------

export const SessionQuery = Type.Object({
  status: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: `Return only sessions with this status. Separate several with commas. One of ${SESSION_STATUSES.join(', ')}.`,
    }),
  ),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4096,
      description:
        "Return only sessions with this string value in their metadata: `user_metadata['run']:'r-1842'`. For a nested value: `user_metadata['a']['b']:'c'`. Join several terms with ` AND `. Inside quotes, write `'` as `\\'` and `\\` as `\\\\`. A text that does not begin like this (a name and a bracket) is searched for: each of its words must be in the id, in the metadata (names or values) or in the title or the address of the last page, or at the beginning of the end reason, in upper or lower case. Each request searches at most 10000 sessions; pass on `x-next-before` to search those that follow.",
    }),
  ),
  endReason: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'Return only sessions that ended with this reason. Separate several with commas.',
    }),
  ),
  keyId: Type.Optional(Uuid('Return only sessions that were created with this agent key.')),
  atLeastSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Return only sessions that lasted at least this long, counting a running session up to now.',
    }),
  ),
  atMostSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Return only sessions that lasted at most this long, counting a running session up to now.',
    }),
  ),
  createdAfter: Type.Optional(Time('Return only sessions that were created at this time or later.')),
  createdBefore: Type.Optional(Time('Return only sessions that were created before this time.')),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SESSION_LIST_MAX,
      default: SESSION_LIST_MAX,
      description: 'Maximum number of sessions to return.',
    }),
  ),
  before: Type.Optional(
    Uuid('Return the sessions that follow this one in the list. Use the value of the response header `x-next-before`.'),
  ),
});
export type SessionQuery = Static<typeof SessionQuery>;

export const UpdateSession = Type.Object(
  {
    projectId: Type.Optional(
      Type.String({ description: 'Id of the application. Must be that of the agent key, which is the default.' }),
    ),
    status: Type.Optional(
      Type.Enum(['REQUEST_RELEASE'], {
        description: 'Ends the session. The response is sent once the browser is closed.',
      }),
    ),
    userMetadata: Type.Optional(AnyObject('Replaces all metadata. The same limits apply as for create.')),
    timeout: Type.Optional(
      Type.Integer({
        minimum: TIMEOUT_MIN_SECONDS,
        maximum: TIMEOUT_MAX_SECONDS,
        description:
          'New time limit in seconds, counted from the creation of the session. The resulting end time must not be in the past.',
      }),
    ),
  },
  { description: 'Omitted fields keep their values. An empty body changes nothing and returns the session.' },
);
export type UpdateSession = Static<typeof UpdateSession>;

export const SessionParams = Type.Object({ id: Uuid('Id of the session.') });

// ---- discovery of the CDP address ----------------------------------------------------------------------------------

export const ConnectQuery = Type.Object({
  signingKey: Type.Optional(Type.String({ description: "The session's signing key, as in `connectUrl`." })),
});

export const BrowserVersion = Type.Object({
  Browser: Type.String({ description: 'Name and version of the browser, for example `Chrome/156.0.0.0`.' }),
  'Protocol-Version': Type.String({ description: 'Version of CDP: `1.3`.' }),
  webSocketDebuggerUrl: Type.String({ description: 'The WebSocket address to connect to.' }),
});
export type BrowserVersion = Static<typeof BrowserVersion>;

// ---- compatibility mount -------------------------------------------------------------------------------------------

export const Project = Type.Object(
  {
    id: Type.String({ description: 'Id of the application.' }),
    createdAt: Time('When the application was created.'),
    updatedAt: Time('When the application last changed.'),
    name: Type.String(),
    ownerId: Type.String({ description: 'Id of the account that is billed.' }),
    defaultTimeout: Type.Integer({ description: 'Default time limit of a session, in seconds.' }),
    concurrency: Type.Integer({ description: 'Maximum number of sessions that run at the same time.' }),
  },
  { description: 'An application, in the form that official clients expect.' },
);
export type Project = Static<typeof Project>;

export const ProjectUsage = Type.Object({
  browserMinutes: Type.Number({ description: 'Total running time of all sessions, in minutes.' }),
  proxyBytes: Type.Integer({ description: 'Bytes sent and received through upstream proxies.' }),
});
export type ProjectUsage = Static<typeof ProjectUsage>;

export const ProjectParams = Type.Object({ id: Uuid('Id of the project, which is the id of the application.') });

export const StartSession = Type.Object({
  browserbaseSessionCreateParams: Type.Optional(CreateSession),
  browserbaseSessionID: Type.Optional(
    Type.String({ description: 'Id of an existing session to use instead of creating one.' }),
  ),
});
export type StartSession = Static<typeof StartSession>;

export const StartedSession = Type.Object({
  success: Type.Boolean(),
  data: Type.Object({
    sessionId: Type.String({ description: 'Id of the session.' }),
    available: Type.Boolean({ description: 'Always false: the client runs the steps itself.' }),
  }),
});

export const EndedSession = Type.Object({ success: Type.Boolean() });
