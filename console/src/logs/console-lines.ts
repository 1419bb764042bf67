// Converts console calls, uncaught exceptions and messages of the browser into lines of text.
import type { JsonObject } from '../../../contract/common.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { list, number, object, text } from './reading.ts';

export interface ConsoleLine {
  readonly key: number;
  readonly timeMs: number;
  readonly pageId: number;
  readonly level: 'error' | 'warning' | 'info';
  readonly message: string;
  /** Source position, such as `app.js:12`. */
  readonly sourcePosition: string;
}

export function consoleLines(logs: readonly SessionLog[]): ConsoleLine[] {
  return logs.flatMap((entry, key) => {
    const params = entry.request?.params ?? {};
    const readLine = READERS[entry.method];
    return readLine ? [{ key, timeMs: entry.timestamp ?? 0, pageId: entry.pageId, ...readLine(params) }] : [];
  });
}

type LineContent = Pick<ConsoleLine, 'level' | 'message' | 'sourcePosition'>;

const READERS: Readonly<Record<string, (params: JsonObject) => LineContent>> = {
  'Runtime.consoleAPICalled': params => ({
    level: levelOf(text(params.type)),
    message: list(params.args).map(argumentText).join(' '),
    sourcePosition: sourcePositionOf(object(list(object(params.stackTrace).callFrames)[0])),
  }),
  'Runtime.exceptionThrown': params => {
    const details = object(params.exceptionDetails);
    const exceptionText = text(object(details.exception).description);
    return { level: 'error', message: exceptionText || text(details.text), sourcePosition: sourcePositionOf(details) };
  },
  'Log.entryAdded': params => {
    const entry = object(params.entry);
    return { level: levelOf(text(entry.level)), message: text(entry.text), sourcePosition: sourcePositionOf(entry) };
  },
};

const levelOf = (word: string): LineContent['level'] =>
  word === 'error' || word === 'assert' ? 'error' : word === 'warning' ? 'warning' : 'info';

function argumentText(value: unknown): string {
  const remoteObject = object(value);
  if (typeof remoteObject.value === 'string') return remoteObject.value;
  if (remoteObject.value !== undefined) return JSON.stringify(remoteObject.value);
  const properties = list(object(remoteObject.preview).properties).map(object);
  if (properties.length > 0)
    return `{${properties.map(({ name, value }) => `${text(name)}: ${text(value)}`).join(', ')}}`;
  return text(remoteObject.description) || text(remoteObject.unserializableValue) || text(remoteObject.type);
}

function sourcePositionOf(frame: JsonObject): string {
  const url = text(frame.url);
  if (!url) return '';
  const line = number(frame.lineNumber);
  return `${url.split(/[?#]/, 1)[0]?.split('/').at(-1) || url}${line === undefined ? '' : `:${line + 1}`}`;
}
