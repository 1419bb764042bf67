// Limits of an application: concurrent sessions, creates per minute, bytes. The owner configures them up to the
// operator's ceiling.
import { type Static, Type } from 'typebox';
import { TIMEOUT_DEFAULT_SECONDS, TIMEOUT_MAX_SECONDS, TIMEOUT_MIN_SECONDS } from './sessions.ts';

const GIB = 1024 ** 3;

/** The limits of an application that has configured none. */
export const BROWSER_LIMITS_DEFAULT = {
  maxConcurrent: 10,
  maxCreatesPerMinute: 60,
  maxWaiting: 20,
  defaultTimeout: TIMEOUT_DEFAULT_SECONDS,
  maxTimeout: TIMEOUT_MAX_SECONDS,
  maxStoredBytes: 10 * GIB,
  maxUploadBytes: 2 * GIB,
  egressBytesPerDay: 100 * GIB,
} as const;

/** The largest value of `maxWaiting` that an application can configure. */
export const WAITING_CREATES_MAX = 1000;
/** Maximum value of `Prefer: wait=SECONDS`. Official clients give up after 60 seconds. */
export const WAIT_SECONDS_MAX = 55;

const Seconds = (description: string, fallback: number) =>
  Type.Integer({ minimum: TIMEOUT_MIN_SECONDS, maximum: TIMEOUT_MAX_SECONDS, default: fallback, description });

const Count = (description: string, fallback: number, maximum: number) =>
  Type.Integer({ minimum: 0, maximum, default: fallback, description });

const LIMIT_FIELDS = {
  maxConcurrent: Count(
    'Maximum number of sessions that run at the same time, including those that are starting. With 0, every create is refused.',
    BROWSER_LIMITS_DEFAULT.maxConcurrent,
    100_000,
  ),
  maxCreatesPerMinute: Count(
    'Maximum number of sessions created in any period of 60 seconds. With 0, every create is refused.',
    BROWSER_LIMITS_DEFAULT.maxCreatesPerMinute,
    1_000_000,
  ),
  maxWaiting: Count(
    'Maximum number of queued creates (`Prefer: wait=SECONDS`). With 0, no create is queued.',
    BROWSER_LIMITS_DEFAULT.maxWaiting,
    WAITING_CREATES_MAX,
  ),
  defaultTimeout: Seconds(
    'Time limit of sessions that are created without `timeout`, in seconds. Must not exceed `maxTimeout`.',
    BROWSER_LIMITS_DEFAULT.defaultTimeout,
  ),
  maxTimeout: Seconds('Maximum `timeout` of a session, in seconds.', BROWSER_LIMITS_DEFAULT.maxTimeout),
  maxStoredBytes: Count(
    'Maximum number of bytes stored for the application: downloads, uploads of running sessions, and contexts. When it is reached, uploads are refused and downloads fail; contexts are still saved.',
    BROWSER_LIMITS_DEFAULT.maxStoredBytes,
    Number.MAX_SAFE_INTEGER,
  ),
  maxUploadBytes: Count(
    'Maximum size of one upload, in bytes.',
    BROWSER_LIMITS_DEFAULT.maxUploadBytes,
    Number.MAX_SAFE_INTEGER,
  ),
  egressBytesPerDay: Count(
    'Maximum number of bytes that sessions send and receive over the network in a day (UTC). When it is reached, creates are refused, and running sessions end with the reason `egress_limit`. With 0, every create is refused.',
    BROWSER_LIMITS_DEFAULT.egressBytesPerDay,
    Number.MAX_SAFE_INTEGER,
  ),
};

export const BrowserLimits = Type.Object(LIMIT_FIELDS, { description: 'Limits of browser sessions.' });
export type BrowserLimits = Static<typeof BrowserLimits>;

const PartialBrowserLimits = Type.Partial(Type.Object(LIMIT_FIELDS));
export type PartialBrowserLimits = Static<typeof PartialBrowserLimits>;

export const ReplaceLimits = Type.Object(
  { browsers: Type.Optional(PartialBrowserLimits) },
  { description: 'Replaces the configured limits. Limits that are omitted get their defaults.' },
);
export type ReplaceLimits = Static<typeof ReplaceLimits>;

const BrowserUsage = Type.Object({
  maxConcurrent: Type.Integer({ description: 'Number of running sessions.' }),
  maxCreatesPerMinute: Type.Integer({ description: 'Number of sessions created in the last 60 seconds.' }),
  maxWaiting: Type.Integer({ description: 'Number of queued creates.' }),
  maxStoredBytes: Type.Integer({ description: 'Number of stored bytes.' }),
  egressBytesPerDay: Type.Integer({
    description: 'Number of bytes sent and received since midnight UTC, counted every 5 seconds.',
  }),
});

export const Limits = Type.Object(
  {
    configured: Type.Object(
      { browsers: BrowserLimits },
      { description: 'Limits that the owner configured, with defaults for the others.' },
    ),
    effective: Type.Object(
      { browsers: BrowserLimits },
      { description: 'Limits in effect: the smaller of the configured limit and the ceiling.' },
    ),
    usage: Type.Object({ browsers: BrowserUsage }, { description: 'Current usage, under the name of each limit.' }),
    ceiling: Type.Object(
      { browsers: PartialBrowserLimits },
      { description: 'Limits set by the operator. A limit that is absent here has no ceiling.' },
    ),
    revision: Type.Integer({ description: 'Increases with every change. In double quotes it is the `ETag`.' }),
  },
  { description: 'Limits and usage of an application.' },
);
export type Limits = Static<typeof Limits>;
