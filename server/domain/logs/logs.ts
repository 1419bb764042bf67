// Reads logs for callers: as a list, a stream, or a HAR file. Reads a bounded number of chunks at once, so that a long
// log needs no more memory than a short one.
import { LOG_KINDS, type LogKind, NO_PAGE, type SessionLog } from '../../../contract/logs.ts';
import type { LogRows } from '../../engines/store/rows/logs.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import { Pace } from '../../kit/pace.ts';
import type { Closeable } from '../../kit/scope.ts';
import { Streams } from '../events/streams.ts';
import { invalidRequest } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { isWithin, type Period, periodOf } from '../period.ts';
import { hasEnded, requireSession } from '../sessions/session.ts';
import type { LogPage, LogQuery, LogState, Logs, NumberedLog } from './api.ts';
import { entryOf, isKind, type LogEntry, viewOf } from './entry.ts';
import { harOf } from './har.ts';
import { ENTRIES_DROPPED } from './session-log.ts';

const POLL_INTERVAL_MS = 1_000;
/** The number of chunks that are read at once: about a megabyte of text. */
const CHUNKS_AT_ONCE = 8;
/** A list ends with the entry that makes it exceed this size. The caller requests the remaining entries separately. */
const RESPONSE_BYTES_MAX = 16 * 1024 ** 2;
const STREAM_BATCH_MAX = 1_000;
const STREAM_CHUNKS_AT_ONCE = 2;

export interface LogsParts {
  readonly logs: Pick<LogRows, 'read'>;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly clock: Clock;
  /** How long logs are kept after the end of the session. */
  readonly keptMs: number;
  /** The version of Berth that HAR files name. */
  readonly version: string;
}

interface NumberedLine {
  readonly id: number;
  readonly line: string;
}

export class LogService implements Logs, Closeable {
  readonly #parts: LogsParts;
  readonly #streams = new Streams();

  constructor(parts: LogsParts) {
    this.#parts = parts;
  }

  async list(caller: AgentCaller, id: string, query: LogQuery & { readonly limit: number }): Promise<LogPage> {
    const filter = filterOf(query);
    const session = await this.#session(caller, id);
    const entries: SessionLog[] = [];
    let bytes = 0;
    let lastNumber = Number(query.after ?? 0);
    for await (const { id: number, line } of this.#lines(session, lastNumber, filter.kinds)) {
      if (entries.length >= query.limit || bytes > RESPONSE_BYTES_MAX) break;
      lastNumber = number;
      const entry = entryOf(line);
      if (!entry || !isRequested(entry, filter)) continue;
      bytes += 2 * line.length;
      entries.push(viewOf(session.id, entry));
    }
    const hasPosition = lastNumber > 0 || query.after !== undefined;
    return { entries, ...(hasPosition ? { nextAfter: `${lastNumber}` } : {}), state: this.#stateOf(session) };
  }

  async *follow(
    caller: AgentCaller,
    id: string,
    query: LogQuery,
    callerSignal: AbortSignal,
  ): AsyncGenerator<readonly NumberedLog[], void> {
    const filter = filterOf(query);
    let session = await this.#session(caller, id);
    const streamPlace = this.#streams.enter(caller.applicationId);
    const signal = AbortSignal.any([callerSignal, this.#streams.closingSignal]);
    try {
      let lastNumber = Number(query.after ?? 0);
      let isFirst = true;
      while (!signal.aborted) {
        const isComplete = this.#isComplete(session);
        const batch: NumberedLog[] = [];
        let readCount = 0;
        for await (const { id: number, line } of this.#lines(
          session,
          lastNumber,
          filter.kinds,
          STREAM_CHUNKS_AT_ONCE,
        )) {
          if (readCount++ >= STREAM_BATCH_MAX) break;
          lastNumber = number;
          const entry = entryOf(line);
          if (entry && isRequested(entry, filter)) batch.push({ id: `${number}`, entry: viewOf(session.id, entry) });
        }
        const isCaughtUp = readCount <= STREAM_BATCH_MAX;
        if (isFirst && isComplete && readCount === 0) return;
        yield batch;
        isFirst = false;
        if (isComplete && isCaughtUp) return;
        if (!isCaughtUp) continue;
        await this.#parts.clock.sleep(POLL_INTERVAL_MS, signal).catch(() => {}); // If aborted, the loop ends.
        session = await this.#session(caller, id);
      }
    } finally {
      streamPlace.leave();
    }
  }

  async har(
    caller: AgentCaller,
    id: string,
  ): Promise<{ readonly pieces: AsyncGenerator<string, void>; readonly state: LogState }> {
    const session = await this.#session(caller, id);
    return { pieces: harOf(this.#entries(session), this.#parts.version), state: this.#stateOf(session) };
  }

  /** Ends all streams. */
  close(): void {
    this.#streams.close();
  }

  async *#entries(session: SessionRow): AsyncGenerator<LogEntry, void> {
    const kinds = ['network', 'page'] as const;
    for await (const { line } of this.#lines(session, 0, kinds)) {
      const entry = entryOf(line);
      if (entry && isRequested(entry, { kinds })) yield entry;
    }
  }

  /**
   * Yields the stored lines with numbers above `after`. If `kinds` is set, skips chunks that contain no entry of these
   * kinds.
   */
  async *#lines(
    { applicationId, id }: SessionRow,
    after: number,
    kinds: readonly LogKind[] | undefined,
    chunksAtOnce = CHUNKS_AT_ONCE,
  ): AsyncGenerator<NumberedLine, void> {
    const pace = new Pace();
    for (let from = after; ; ) {
      const page = { after: from, limit: chunksAtOnce, ...(kinds ? { kinds: [...kinds, 'any'] } : {}) };
      const chunks = await this.#parts.logs.read(applicationId, id, page);
      for (const { first, lines } of chunks)
        for (const [index, line] of lines.entries()) {
          if (first + index <= from) continue;
          if (pace.isDue) await pace.rest();
          from = first + index;
          yield { id: from, line };
        }
      if (chunks.length < chunksAtOnce) return;
    }
  }

  #stateOf(session: SessionRow): LogState {
    if (session.settings.logSession === false) return 'disabled';
    const { endedAt } = session;
    return endedAt && this.#nowMs() - endedAt.getTime() > this.#parts.keptMs ? 'expired' : 'on';
  }

  /** Whether no more entries will follow: the status of a session becomes final only after its log has been written. */
  #isComplete(session: SessionRow): boolean {
    return hasEnded(session) || session.settings.logSession === false;
  }

  #nowMs(): number {
    return this.#parts.clock.now().getTime();
  }

  #session({ applicationId }: AgentCaller, id: string): Promise<SessionRow> {
    return requireSession(this.#parts.sessions, applicationId, id);
  }
}

interface LogFilter extends Period {
  readonly kinds?: readonly LogKind[];
  readonly pageId?: number;
}

/**
 * Whether the entry matches the filter. Entries of the kind `any` match every requested kind, and reports of dropped
 * entries match every page.
 */
function isRequested(entry: LogEntry, { kinds, pageId, ...period }: LogFilter): boolean {
  const { at, kind, method, page = NO_PAGE } = entry;
  const isOfKind = !kinds || kind === 'any' || kinds.includes(kind);
  const isOfPage = pageId === undefined || method === ENTRIES_DROPPED || page === pageId;
  return isOfKind && isOfPage && isWithin(period, at);
}

function filterOf(query: LogQuery): LogFilter {
  const kinds = kindsOf(query);
  const { pageId } = query;
  return { ...periodOf(query), ...(kinds ? { kinds } : {}), ...(pageId === undefined ? {} : { pageId }) };
}

function kindsOf({ type }: LogQuery): readonly LogKind[] | undefined {
  return type?.split(',').map(part => {
    const word = part.trim();
    if (isKind(word)) return word;
    throw invalidRequest([
      { path: 'type', message: `is ${JSON.stringify(word)}; expected one or more of ${LOG_KINDS.join(', ')}` },
    ]);
  });
}
