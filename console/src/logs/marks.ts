// The marks on the timeline below a replay, in one lane for each kind.
import type { SessionEvent } from '../../../contract/events.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { consoleLines } from './console-lines.ts';
import { networkCalls, shortUrl } from './network-calls.ts';
import { object, text } from './reading.ts';

export interface Mark {
  readonly key: string;
  readonly atMs: number;
  /** The end, for marks with a duration. */
  readonly untilMs?: number;
  readonly words: string;
  readonly isBad: boolean;
}

export interface Lane {
  readonly name: string;
  readonly marks: readonly Mark[];
}

/** The lanes of one page, and the events of the session. */
export function lanesOf(logs: readonly SessionLog[], events: readonly SessionEvent[], pageId: number): Lane[] {
  const own = logs.filter(entry => entry.pageId === pageId);
  return [
    { name: 'Pages', marks: pageMarks(own) },
    {
      name: 'Network',
      marks: networkCalls(own).map(({ key, startMs, endMs, url, status, failed }) => ({
        key,
        atMs: startMs,
        ...(endMs === undefined ? {} : { untilMs: endMs }),
        words: `${shortUrl(url)} ${failed ?? status ?? ''}`.trim(),
        isBad: failed !== undefined || (status ?? 0) >= 400,
      })),
    },
    {
      name: 'Console',
      marks: consoleLines(own).map(({ key, timeMs, words, level }) => ({
        key: String(key),
        atMs: timeMs,
        words,
        isBad: level === 'error',
      })),
    },
    { name: 'Commands', marks: commandMarks(own) },
    {
      name: 'Events',
      marks: events.map(({ id, time, type }) => ({ key: id, atMs: Date.parse(time), words: type, isBad: false })),
    },
  ].filter(({ marks }) => marks.length > 0);
}

const pageMarks = (logs: readonly SessionLog[]): Mark[] =>
  logs.flatMap(({ method, timestamp = 0, request }, at) => {
    const { url, parentId } = object(request?.params.frame);
    if (method !== 'Page.frameNavigated' || parentId !== undefined) return [];
    return [{ key: String(at), atMs: timestamp, words: text(url), isBad: false }];
  });

const commandMarks = (logs: readonly SessionLog[]): Mark[] =>
  logs.flatMap(({ method, timestamp = 0, response }, at) =>
    response === undefined
      ? []
      : [{ key: String(at), atMs: timestamp, words: method, isBad: response.result.error !== undefined }],
  );
