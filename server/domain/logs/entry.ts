// The format of a log entry: one line of JSON. Secrets have already been removed.

import { LOG_KINDS, type LogKind, NO_PAGE, type SessionLog } from '../../../contract/logs.ts';
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';

/** `any` is for markers that are returned to every reader, whichever kinds were requested. */
export type EntryKind = LogKind | 'any';

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly kind: EntryKind;
  readonly method: string;
  /** Number of the page. Absent if the entry belongs to no page. */
  readonly page?: number;
  readonly frameId?: string;
  readonly loaderId?: string;
  readonly params: JsonObject;
  /** Only for commands. */
  readonly result?: JsonObject;
  readonly answeredAt?: number;
}

/** If an entry is longer than this, its length is stored instead of its parameters, and its result is omitted. */
const ENTRY_BYTES_MAX = 16 * 1024;

export function lineOf(entry: LogEntry): string {
  const line = JSON.stringify(entry);
  if (line.length <= ENTRY_BYTES_MAX) return line;
  const { result: _, ...rest } = entry;
  return JSON.stringify({ ...rest, params: { cut: true, bytes: line.length } });
}

/** Parses a stored line. Undefined if it does not have the current format. */
export function entryOf(line: string): LogEntry | undefined {
  const parsed = parseJson(line);
  return isEntry(parsed) ? parsed : undefined;
}

const isEntry = (value: unknown): value is LogEntry =>
  isObject(value) &&
  typeof value.at === 'number' &&
  typeof value.method === 'string' &&
  typeof value.kind === 'string' &&
  (value.kind === 'any' || isKind(value.kind)) &&
  isObject(value.params);

export const isKind = (word: string): word is LogKind => LOG_KINDS.some(kind => kind === word);

export function viewOf(session: string, entry: LogEntry): SessionLog {
  const { at, method, page = NO_PAGE, frameId, loaderId, params, result, answeredAt } = entry;
  return {
    method,
    pageId: page,
    sessionId: session,
    timestamp: at,
    ...(frameId === undefined ? {} : { frameId }),
    ...(loaderId === undefined ? {} : { loaderId }),
    request: { timestamp: at, params, rawBody: JSON.stringify(params) },
    ...(result === undefined
      ? {}
      : {
          response: {
            ...(answeredAt === undefined ? {} : { timestamp: answeredAt }),
            result,
            rawBody: JSON.stringify(result),
          },
        }),
  };
}
