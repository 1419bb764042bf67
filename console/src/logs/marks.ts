// The marks on the timeline below a replay, in one lane for each kind.
import type { SessionEvent } from '../../../contract/events.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { consoleLines } from './console-lines.ts';
import { networkCalls, shortUrl } from './network-calls.ts';
import { asObject, asText } from './reading.ts';

export interface Mark {
  readonly key: string;
  readonly atMs: number;
  /** The end of the mark, for marks with a duration. */
  readonly untilMs?: number;
  readonly words: string;
  readonly isBad: boolean;
}

export interface Lane {
  readonly name: string;
  readonly marks: readonly Mark[];
}

/** Returns the lanes made from the log, and one for the session's events. */
export function lanesOf(logs: readonly SessionLog[], events: readonly SessionEvent[]): Lane[] {
  return [
    { name: 'Pages', marks: pageMarks(logs) },
    {
      name: 'Network',
      marks: networkCalls(logs).map(({ key, startMs, endMs, url, status, failureText }) => ({
        key,
        atMs: startMs,
        ...(endMs === undefined ? {} : { untilMs: endMs }),
        words: `${shortUrl(url)} ${failureText ?? status ?? ''}`.trim(),
        isBad: failureText !== undefined || (status ?? 0) >= 400,
      })),
    },
    {
      name: 'Console',
      marks: consoleLines(logs).map(({ key, timeMs, message, level }) => ({
        key: String(key),
        atMs: timeMs,
        words: message,
        isBad: level === 'error',
      })),
    },
    { name: 'Commands', marks: commandMarks(logs) },
    {
      name: 'Events',
      marks: events.map(({ id, time, type }) => ({ key: id, atMs: Date.parse(time), words: type, isBad: false })),
    },
  ].filter(({ marks }) => marks.length > 0);
}

const pageMarks = (logs: readonly SessionLog[]): Mark[] =>
  logs.flatMap((entry, at) => {
    const url = navigationUrlOf(entry);
    return url === undefined ? [] : [{ key: String(at), atMs: entry.timestamp ?? 0, words: url, isBad: false }];
  });

/** Returns the address if the entry is a navigation of a page's main frame. */
function navigationUrlOf({ method, request }: SessionLog): string | undefined {
  const { url, parentId } = asObject(request?.params.frame);
  return method === 'Page.frameNavigated' && parentId === undefined ? asText(url) : undefined;
}

/** Returns the host and path of the last address of each page, by page number. */
export function pageNames(logs: readonly SessionLog[]): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const entry of logs) {
    const url = URL.parse(navigationUrlOf(entry) ?? '');
    if (url?.host) names.set(entry.pageId, `${url.host}${url.pathname === '/' ? '' : url.pathname}`);
  }
  return names;
}

const commandMarks = (logs: readonly SessionLog[]): Mark[] =>
  logs.flatMap(({ method, timestamp = 0, response }, at) =>
    response === undefined
      ? []
      : [{ key: String(at), atMs: timestamp, words: method, isBad: response.result.error !== undefined }],
  );
