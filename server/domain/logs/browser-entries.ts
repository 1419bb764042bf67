// Converts the CDP events of one browser into log entries. Returns undefined for events that are not logged.
import { LOG_KINDS } from '../../../contract/logs.ts';
import type { JsonObject } from '../../kit/json.ts';
import { consoleEntry } from './console-entries.ts';
import type { LogEntry } from './entry.ts';
import { networkParams } from './network-entries.ts';
import { pageParams } from './page-entries.ts';
import { numberAt, objectAt, textAt, type UntrustedObject } from './values.ts';

/**
 * A timestamp that is more than `FUTURE_MAX_MS` in the future or more than `PAST_MAX_MS` in the past was forged by a
 * page, and is replaced. No session lasts as long as `PAST_MAX_MS`.
 */
const FUTURE_MAX_MS = 1_000;
const PAST_MAX_MS = 7 * 3_600_000;
/** Maximum number of requests whose body bytes are counted at the same time. */
const COUNTED_REQUESTS_MAX = 2_000;
const REQUEST_ID_CHARS_MAX = 200;

/** Every kind of entry except `command`, because commands come from clients. */
const BROWSER_KINDS = LOG_KINDS.filter(kind => kind !== 'command');
export type BrowserKind = (typeof BROWSER_KINDS)[number];
export type BrowserEntry = Omit<LogEntry, 'page' | 'kind'> & { readonly kind: BrowserKind };

/** Which events produce entries of each kind. `Page.*` is every event of the domain that no kind names. */
const EVENTS: Readonly<Record<BrowserKind, readonly string[]>> = {
  console: ['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded'],
  network: ['Network.*'],
  page: ['Page.*', 'Inspector.targetCrashed'],
};
const KIND_BY_EVENT: ReadonlyMap<string, BrowserKind> = new Map(
  BROWSER_KINDS.flatMap(kind => EVENTS[kind].map(event => [event, kind])),
);

/** The kind of entry that an event produces, if any. Called for every event, so it must be cheap. */
export const kindOf = (method: string): BrowserKind | undefined =>
  KIND_BY_EVENT.get(method) ?? KIND_BY_EVENT.get(`${method.slice(0, method.indexOf('.'))}.*`);

type EntryContent = Omit<BrowserEntry, 'kind' | 'method'>;
type EntryBuilder = (method: string, params: UntrustedObject, nowMs: number) => EntryContent | undefined;

export class BrowserEntries {
  /** Body bytes received so far, by request id. Chromium reports them only in pieces, so they are added up. */
  readonly #bytesByRequest = new Map<string, number>();
  /** Offset from Chromium's monotonic time, which network events use, to wall-clock time. */
  #offsetMs: number | undefined;

  /** Functions that convert an event into an entry, by kind of entry. */
  readonly #builders: Readonly<Record<BrowserKind, EntryBuilder>> = {
    console: (method, params, nowMs) => {
      const consoleFields = consoleEntry(method, params);
      return consoleFields && { at: plausibleTime(consoleFields.at ?? nowMs, nowMs), params: consoleFields.params };
    },
    network: (method, params, nowMs) =>
      method === 'Network.dataReceived'
        ? this.#countBytes(params)
        : this.#withLocation(networkParams(method, this.#withBytes(method, params)), params, nowMs),
    page: (method, params, nowMs) => this.#withLocation(pageParams(method, params), params, nowMs),
  };

  of(kind: BrowserKind, method: string, params: UntrustedObject, nowMs: number): BrowserEntry | undefined {
    const entryContent = this.#builders[kind](method, params, nowMs);
    return entryContent && { kind, method, ...entryContent };
  }

  #withLocation(
    filteredParams: JsonObject | undefined,
    params: UntrustedObject,
    nowMs: number,
  ): EntryContent | undefined {
    return filteredParams && { at: this.#timeOf(params, nowMs), ...locationOf(params), params: filteredParams };
  }

  #timeOf(params: UntrustedObject, nowMs: number): number {
    const monotonicSeconds = numberAt(params, 'timestamp');
    const wallSeconds = numberAt(params, 'wallTime');
    if (monotonicSeconds === undefined) return nowMs;
    if (wallSeconds !== undefined) this.#offsetMs = 1000 * (wallSeconds - monotonicSeconds);
    return this.#offsetMs === undefined ? nowMs : plausibleTime(1000 * monotonicSeconds + this.#offsetMs, nowMs);
  }

  #countBytes(params: UntrustedObject): undefined {
    const id = requestIdOf(params);
    const bytes = (this.#bytesByRequest.get(id) ?? 0) + (numberAt(params, 'dataLength') ?? 0);
    if (this.#bytesByRequest.size < COUNTED_REQUESTS_MAX || this.#bytesByRequest.has(id))
      this.#bytesByRequest.set(id, bytes);
  }

  #withBytes(method: string, params: UntrustedObject): UntrustedObject {
    if (method !== 'Network.loadingFinished' && method !== 'Network.loadingFailed') return params;
    const id = requestIdOf(params);
    const bytes = this.#bytesByRequest.get(id);
    this.#bytesByRequest.delete(id);
    return bytes === undefined ? params : { ...params, dataLength: bytes };
  }
}

const requestIdOf = (params: UntrustedObject): string =>
  (textAt(params, 'requestId') ?? '').slice(0, REQUEST_ID_CHARS_MAX);

/**
 * Replaces a timestamp that cannot be right. Rounds other timestamps to microseconds, so that an event that is read
 * twice gets the same time.
 */
const plausibleTime = (at: number, nowMs: number): number =>
  at <= nowMs + FUTURE_MAX_MS && at >= nowMs - PAST_MAX_MS ? Math.round(at * 1000) / 1000 : nowMs;

function locationOf(params: UntrustedObject): { frameId?: string; loaderId?: string } {
  const frame = objectAt(params, 'frame');
  const frameId = textAt(params, 'frameId') ?? textAt(frame, 'id');
  const loaderId = textAt(params, 'loaderId') ?? textAt(frame, 'loaderId');
  return { ...(frameId ? { frameId } : {}), ...(loaderId ? { loaderId } : {}) };
}
