// Log entries for the console: calls to the console API, exceptions, and messages from the browser.
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import type { LogEntry } from './entry.ts';
import { redactText, redactUrl, truncate } from './redact.ts';
import { objectAt, plainMembers, prunedJson, textAt, type UntrustedObject } from './values.ts';

const ARGUMENTS_MAX = 20;
const TEXT_CHARS_MAX = 2_048;
const PROPERTIES_MAX = 20;
const PROPERTY_CHARS_MAX = 200;
const CALL_FRAMES_MAX = 5;

type ConsoleEntry = Pick<LogEntry, 'params'> & { readonly at?: number };

export function consoleEntry(method: string, params: UntrustedObject): ConsoleEntry | undefined {
  switch (method) {
    case 'Runtime.consoleAPICalled':
      return { ...timeField(params.timestamp), params: consoleCall(params) };
    case 'Runtime.exceptionThrown':
      return {
        ...timeField(params.timestamp),
        params: { exceptionDetails: exceptionFields(objectAt(params, 'exceptionDetails')) },
      };
    case 'Log.entryAdded':
      return {
        ...timeField(objectAt(params, 'entry')?.timestamp),
        params: { entry: browserMessage(objectAt(params, 'entry')) },
      };
    default:
      return undefined;
  }
}

const timeField = (at: unknown): { at?: number } => (typeof at === 'number' ? { at } : {});

function consoleCall(params: UntrustedObject): JsonObject {
  const args = Array.isArray(params.args) ? params.args : [];
  return {
    type: truncate(textAt(params, 'type') ?? 'log', PROPERTY_CHARS_MAX),
    args: args.slice(0, ARGUMENTS_MAX).filter(isObject).map(remoteObject),
    ...(args.length > ARGUMENTS_MAX ? { argsCut: args.length - ARGUMENTS_MAX } : {}),
    ...plainMembers(params, ['executionContextId']),
    ...stackFields(params),
  };
}

function exceptionFields(details: UntrustedObject | undefined): JsonObject {
  const exceptionObject = objectAt(details, 'exception');
  return {
    text: redactedText(textAt(details, 'text') ?? ''),
    ...plainMembers(details, ['exceptionId', 'lineNumber', 'columnNumber', 'executionContextId']),
    ...addressField(details),
    ...stackFields(details),
    ...(exceptionObject ? { exception: remoteObject(exceptionObject) } : {}),
  };
}

function browserMessage(entry: UntrustedObject | undefined): JsonObject {
  return {
    source: truncate(textAt(entry, 'source') ?? 'other', PROPERTY_CHARS_MAX),
    level: truncate(textAt(entry, 'level') ?? 'info', PROPERTY_CHARS_MAX),
    text: redactedText(textAt(entry, 'text') ?? ''),
    ...plainMembers(entry, ['lineNumber']),
    ...addressField(entry),
    ...stackFields(entry),
    ...plainMembers(entry, ['networkRequestId', 'workerId', 'category']),
  };
}

/** The fields of a remote object, without its object id, which is useless to readers. */
export function remoteObject(object: UntrustedObject): JsonObject {
  const { value } = object;
  const preview = objectAt(object, 'preview');
  return {
    ...plainMembers(object, ['type', 'subtype', 'className', 'unserializableValue']),
    ...(value === undefined ? {} : { value: loggedValue(value) }),
    ...(typeof object.description === 'string' ? { description: redactedText(object.description) } : {}),
    ...(preview ? { preview: loggedPreview(preview) } : {}),
  };
}

function loggedValue(value: unknown): Json {
  if (typeof value === 'string') return redactedText(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  return redactedText(prunedJson(value));
}

function loggedPreview(preview: UntrustedObject): JsonObject {
  const properties = Array.isArray(preview.properties) ? preview.properties : [];
  return {
    ...plainMembers(preview, ['type', 'subtype']),
    ...(typeof preview.description === 'string' ? { description: redactedText(preview.description) } : {}),
    overflow: preview.overflow === true || properties.length > PROPERTIES_MAX,
    properties: properties.slice(0, PROPERTIES_MAX).filter(isObject).map(loggedProperty),
  };
}

/** Formats a property. Name and value are redacted together, so that `{password: …}` is recognized. */
function loggedProperty(entry: UntrustedObject): JsonObject {
  const name = truncate(textAt(entry, 'name') ?? '', PROPERTY_CHARS_MAX);
  const value = textAt(entry, 'value')?.slice(0, 2 * PROPERTY_CHARS_MAX);
  const pair = value === undefined ? undefined : redactText(`${name}: ${JSON.stringify(value)}`);
  const isRedacted = pair !== undefined && pair !== `${name}: ${JSON.stringify(value)}`;
  return {
    name,
    ...plainMembers(entry, ['type', 'subtype']),
    ...(value === undefined
      ? {}
      : { value: truncate(isRedacted ? (pair ?? '').slice(name.length + 2) : value, PROPERTY_CHARS_MAX) }),
  };
}

function stackFields(params: UntrustedObject | undefined): JsonObject {
  const frames = objectAt(params, 'stackTrace')?.callFrames;
  if (!Array.isArray(frames) || frames.length === 0) return {};
  const callFrames = frames.slice(0, CALL_FRAMES_MAX).filter(isObject);
  return {
    stackTrace: {
      callFrames: callFrames.map(frame => ({
        functionName: truncate(textAt(frame, 'functionName') ?? '', PROPERTY_CHARS_MAX),
        ...addressField(frame),
        ...plainMembers(frame, ['lineNumber', 'columnNumber']),
      })),
    },
  };
}

export const redactedText = (raw: string): string =>
  truncate(redactText(raw.slice(0, 2 * TEXT_CHARS_MAX)), TEXT_CHARS_MAX);

const addressField = (params: UntrustedObject | undefined): JsonObject => {
  const url = textAt(params, 'url');
  return url === undefined ? {} : { url: redactUrl(url) };
};
