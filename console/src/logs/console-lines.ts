// Converts console calls, uncaught exceptions and messages of the browser into lines of text.
import type { JsonObject } from '../../../contract/common.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { asList, asNumber, asObject, asText } from './reading.ts';

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
    level: levelOf(asText(params.type)),
    message: asList(params.args).map(argumentText).join(' '),
    sourcePosition: sourcePositionOf(asObject(asList(asObject(params.stackTrace).callFrames)[0])),
  }),
  'Runtime.exceptionThrown': params => {
    const details = asObject(params.exceptionDetails);
    const exceptionText = asText(asObject(details.exception).description);
    return {
      level: 'error',
      message: exceptionText || asText(details.text),
      sourcePosition: sourcePositionOf(details),
    };
  },
  'Log.entryAdded': params => {
    const entry = asObject(params.entry);
    return {
      level: levelOf(asText(entry.level)),
      message: asText(entry.text),
      sourcePosition: sourcePositionOf(entry),
    };
  },
};

const levelOf = (word: string): LineContent['level'] =>
  word === 'error' || word === 'assert' ? 'error' : word === 'warning' ? 'warning' : 'info';

function argumentText(value: unknown): string {
  const remoteObject = asObject(value);
  if (typeof remoteObject.value === 'string') return remoteObject.value;
  if (remoteObject.value !== undefined) return JSON.stringify(remoteObject.value);
  const properties = asList(asObject(remoteObject.preview).properties).map(asObject);
  if (properties.length > 0)
    return `{${properties.map(({ name, value }) => `${asText(name)}: ${asText(value)}`).join(', ')}}`;
  return asText(remoteObject.description) || asText(remoteObject.unserializableValue) || asText(remoteObject.type);
}

function sourcePositionOf(frame: JsonObject): string {
  const url = asText(frame.url);
  if (!url) return '';
  const line = asNumber(frame.lineNumber);
  return `${url.split(/[?#]/, 1)[0]?.split('/').at(-1) || url}${line === undefined ? '' : `:${line + 1}`}`;
}
