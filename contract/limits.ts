// Limits of an application: what it may use at once, in a minute and in all. Configured by its owner, capped by the operator.
import { type Static, Type } from 'typebox';
import { TIMEOUT_DEFAULT_SECONDS, TIMEOUT_MAX_SECONDS, TIMEOUT_MIN_SECONDS } from './sessions.ts';

const GIB = 1024 ** 3;

/** What holds for an application that has configured nothing. */
export const BROWSER_LIMITS_DEFAULT = {
  maxConcurrent: 10,
  maxCreatesPerMinute: 60,
  maxWaiting: 20,
  defaultTimeout: TIMEOUT_DEFAULT_SECONDS,
  maxTimeout: TIMEOUT_MAX_SECONDS,
  maxStoredBytes: 10 * GIB,
  maxUploadBytes: 2 * GIB,
} as const;

/** Callers of one application that may stand in line at once, whatever is configured. */
export const WAITING_MAX = 1000;
/** Longest wait of `Prefer: wait=SECONDS`: official clients give up after 60 seconds. */
export const WAIT_MAX_SECONDS = 55;

const Seconds = (description: string, fallback: number) =>
  Type.Integer({ minimum: TIMEOUT_MIN_SECONDS, maximum: TIMEOUT_MAX_SECONDS, default: fallback, description });

const Count = (description: string, fallback: number, maximum: number) =>
  Type.Integer({ minimum: 0, maximum, default: fallback, description });

const MEMBERS = {
  maxConcurrent: Count(
    'Sessions that run at once, starting ones included. 0 admits none.',
    BROWSER_LIMITS_DEFAULT.maxConcurrent,
    100_000,
  ),
  maxCreatesPerMinute: Count(
    'Sessions created in any 60 seconds. 0 admits none.',
    BROWSER_LIMITS_DEFAULT.maxCreatesPerMinute,
    1_000_000,
  ),
  maxWaiting: Count(
    'Creates that stand in line at once (`Prefer: wait=SECONDS`). 0: nobody waits.',
    BROWSER_LIMITS_DEFAULT.maxWaiting,
    WAITING_MAX,
  ),
  defaultTimeout: Seconds(
    'Seconds a session lives where its create names no `timeout`. Never above `maxTimeout`.',
    BROWSER_LIMITS_DEFAULT.defaultTimeout,
  ),
  maxTimeout: Seconds('Longest `timeout` of a session, in seconds.', BROWSER_LIMITS_DEFAULT.maxTimeout),
  maxStoredBytes: Count(
    'Bytes kept for the application in all: downloads, uploads of sessions that run, and contexts. Over it uploads are refused and downloads fail; a context is saved all the same.',
    BROWSER_LIMITS_DEFAULT.maxStoredBytes,
    Number.MAX_SAFE_INTEGER,
  ),
  maxUploadBytes: Count('Bytes of one upload.', BROWSER_LIMITS_DEFAULT.maxUploadBytes, Number.MAX_SAFE_INTEGER),
};

export const BrowserLimits = Type.Object(MEMBERS, { description: 'Limits of browser sessions.' });
export type BrowserLimits = Static<typeof BrowserLimits>;

const SomeBrowserLimits = Type.Partial(Type.Object(MEMBERS));
export type SomeBrowserLimits = Static<typeof SomeBrowserLimits>;

export const ReplaceLimits = Type.Object(
  { browsers: Type.Optional(SomeBrowserLimits) },
  { description: 'Replaces what was configured: a member that is left out has its default.' },
);
export type ReplaceLimits = Static<typeof ReplaceLimits>;

const BrowserUsage = Type.Object({
  maxConcurrent: Type.Integer({ description: 'Sessions that run now.' }),
  maxCreatesPerMinute: Type.Integer({ description: 'Sessions created in the last 60 seconds.' }),
  maxWaiting: Type.Integer({ description: 'Creates that stand in line now, at the process that answers.' }),
  maxStoredBytes: Type.Integer({ description: 'Bytes kept now.' }),
});

export const Limits = Type.Object(
  {
    configured: Type.Object({ browsers: BrowserLimits }, { description: 'As the owner wishes, with the defaults.' }),
    effective: Type.Object(
      { browsers: BrowserLimits },
      { description: 'What holds: the smaller of what is configured and the ceiling.' },
    ),
    usage: Type.Object({ browsers: BrowserUsage }, { description: 'How much of each limit is used, under its name.' }),
    ceiling: Type.Object(
      { browsers: SomeBrowserLimits },
      { description: "The operator's own limits; a member that is not here has none." },
    ),
    revision: Type.Integer({ description: 'Grows with every change; the `ETag` in quotes.' }),
  },
  { description: 'What an application may use, and how much of it it uses.' },
);
export type Limits = Static<typeof Limits>;
