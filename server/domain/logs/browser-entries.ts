// From the CDP events of one browser, as the server's own channels hear them, to entries of its log. What is not logged
// gives none.
import type { LogKind } from '../../../contract/logs.ts';
import { consoleEntry } from './console-entries.ts';
import type { LogEntry } from './entry.ts';
import { networkParams } from './network-entries.ts';
import { pageParams } from './page-entries.ts';
import { numberAt, objectAt, type Said, textAt } from './values.ts';

/** A time of the browser that is farther ahead of ours, or behind the longest session, was made up by a page. */
const AHEAD_MS = 1_000;
const BEHIND_MS = 7 * 3_600_000;
/** Requests whose bytes are counted at once. */
const COUNTED_MAX = 2_000;
const REQUEST_ID_CHARS_MAX = 200;

export type BrowserEntry = Omit<LogEntry, 'page' | 'kind'> & { readonly kind: LogKind };

/** The part of the log that an event belongs to, if any. Cheap: asked of every event. */
export function kindOf(method: string): LogKind | undefined {
  if (method.startsWith('Network.')) return 'network';
  if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded')
    return 'console';
  return method.startsWith('Page.') || method === 'Inspector.targetCrashed' ? 'page' : undefined;
}

export class BrowserEntries {
  /** Bytes of bodies that came so far, by request: Chromium tells of them only piece by piece. */
  readonly #bytes = new Map<string, number>();
  /** Network events count from the start of the machine; requests tell what the wall clock showed. */
  #offsetMs: number | undefined;

  of(kind: LogKind, method: string, params: Said, nowMs: number): BrowserEntry | undefined {
    if (kind === 'console') {
      const said = consoleEntry(method, params);
      return said && { kind, method, at: plausible(said.at ?? nowMs, nowMs), params: said.params };
    }
    if (method === 'Network.dataReceived') return this.#count(params);
    const kept =
      kind === 'network' ? networkParams(method, this.#withBytes(method, params)) : pageParams(method, params);
    return kept && { kind, method, at: this.#timeOf(params, nowMs), ...placeOf(params), params: kept };
  }

  #timeOf(params: Said, nowMs: number): number {
    const monotonicSeconds = numberAt(params, 'timestamp');
    const wallSeconds = numberAt(params, 'wallTime');
    if (monotonicSeconds === undefined) return nowMs;
    if (wallSeconds !== undefined) this.#offsetMs = 1000 * (wallSeconds - monotonicSeconds);
    return this.#offsetMs === undefined ? nowMs : plausible(1000 * monotonicSeconds + this.#offsetMs, nowMs);
  }

  #count(params: Said): undefined {
    const id = requestIdOf(params);
    const bytes = (this.#bytes.get(id) ?? 0) + (numberAt(params, 'dataLength') ?? 0);
    if (this.#bytes.size < COUNTED_MAX || this.#bytes.has(id)) this.#bytes.set(id, bytes);
  }

  #withBytes(method: string, params: Said): Said {
    if (method !== 'Network.loadingFinished' && method !== 'Network.loadingFailed') return params;
    const id = requestIdOf(params);
    const bytes = this.#bytes.get(id);
    this.#bytes.delete(id);
    return bytes === undefined ? params : { ...params, dataLength: bytes };
  }
}

const requestIdOf = (params: Said): string => (textAt(params, 'requestId') ?? '').slice(0, REQUEST_ID_CHARS_MAX);

/** As the browser says it, to the microsecond, so that one event told twice has one time. */
const plausible = (at: number, nowMs: number): number =>
  at <= nowMs + AHEAD_MS && at >= nowMs - BEHIND_MS ? Math.round(at * 1000) / 1000 : nowMs;

function placeOf(params: Said): { frameId?: string; loaderId?: string } {
  const frame = objectAt(params, 'frame');
  const frameId = textAt(params, 'frameId') ?? textAt(frame, 'id');
  const loaderId = textAt(params, 'loaderId') ?? textAt(frame, 'loaderId');
  return { ...(frameId ? { frameId } : {}), ...(loaderId ? { loaderId } : {}) };
}
