// Reads the parts of Chromium's messages that routing needs, without parsing the messages: `sessionId` is the last
// member of every message on a channel, `id` the first member of every response, and `method` the first member of every
// event (measured on Chromium 156).

import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { matchesAt } from './matches-at.ts';

/** `"sessionId":"` + 32 hex digits + `"}`. */
const SUFFIX_BYTES = 47;
const SESSION_ID_BYTES = 32;
const SUFFIX_HEAD = Buffer.from('"sessionId":"');
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;
const RESPONSE_HEAD = Buffer.from('{"id":');
const TARGET_EVENT_HEAD = Buffer.from('{"method":"Target.');

/** Returns the id of the channel that a message belongs to, or undefined for the root of the pipe. */
export function channelOf(message: Buffer): string | undefined {
  const at = message.length - SUFFIX_BYTES;
  if (at < 1 || message[message.length - 1] !== CLOSE_BRACE || message[message.length - 2] !== QUOTE) return undefined;
  if (!matchesAt(message, at, SUFFIX_HEAD)) return undefined;
  return message.toString('latin1', message.length - 2 - SESSION_ID_BYTES, message.length - 2);
}

/**
 * Returns the message without its `sessionId`, as it would be sent on the root channel of a connection. Changes the
 * buffer, which is not used elsewhere.
 */
export function withoutChannel(message: Buffer): Buffer {
  const commaAt = message.length - SUFFIX_BYTES - 1;
  message[commaAt] = CLOSE_BRACE;
  return message.subarray(0, commaAt + 1);
}

/** Returns the id of a response, or undefined for an event. */
export function responseId(message: Buffer): number | undefined {
  if (!matchesAt(message, 0, RESPONSE_HEAD)) return undefined;
  let at = RESPONSE_HEAD.length;
  const isNegative = message[at] === 0x2d;
  if (isNegative) at++;
  let id = 0;
  for (let byte = message[at] ?? 0; byte >= 0x30 && byte <= 0x39; byte = message[++at] ?? 0) id = id * 10 + byte - 0x30;
  return isNegative ? -id : id;
}

const REQUEST_SENT_HEAD = Buffer.from('{"method":"Network.requestWillBeSentExtraInfo"');
const PROXY_PREFIX = Buffer.from('Proxy-');
/** This cannot match inside a JSON string, because every quote in a string is escaped. */
const PROXY_CONNECTION_HEADER = Buffer.from('"Proxy-Connection":"');

/**
 * Renames Proxy-Connection to Connection in the headers of a sent request. The browser sends the former to our egress
 * proxy, and the proxy sends the latter to the website. Changes the buffer, which is not used elsewhere.
 */
export function withoutProxyHeader(message: Buffer): Buffer {
  if (!matchesAt(message, 0, REQUEST_SENT_HEAD)) return message;
  const headerAt = message.indexOf(PROXY_CONNECTION_HEADER, REQUEST_SENT_HEAD.length);
  if (headerAt < 0) return message;
  message.copyWithin(headerAt + 1, headerAt + 1 + PROXY_PREFIX.length);
  return message.subarray(0, message.length - PROXY_PREFIX.length);
}

export const isScreencastFrame = (message: Buffer): boolean => matchesAt(message, 0, FRAME_HEAD);

export const isTargetEvent = (message: Buffer): boolean => matchesAt(message, 0, TARGET_EVENT_HEAD);

export interface ProtocolError {
  readonly code: number;
  readonly message: string;
}

/** A parsed response or event from the browser. */
export interface IncomingMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: ProtocolError;
  readonly sessionId?: string;
  /** The decoded image of a screencast frame. If set, `params.data` is empty. */
  readonly frameBytes?: Buffer;
}

/**
 * Throws on an invalid message, such as a fragment right after a pipe was adopted, or the output of a broken browser.
 */
export function parseIncomingMessage(message: Buffer): IncomingMessage {
  if (message.length > PARSED_BYTES_MAX)
    throw new Error(
      `the browser sent a message of ${message.length} bytes; at most ${PARSED_BYTES_MAX} bytes are accepted`,
    );
  return parseMessageText(message.toString('utf8'));
}

function parseMessageText(text: string): IncomingMessage {
  const value = parseJson(text);
  if (!isIncomingMessage(value)) throw new Error('the browser sent a message that is not a CDP message');
  return value;
}

const isIncomingMessage = (value: unknown): value is IncomingMessage =>
  isObject(value) &&
  isAbsentOrOfType(value.id, 'number') &&
  isAbsentOrOfType(value.method, 'string') &&
  isAbsentOrOfType(value.sessionId, 'string') &&
  (value.params === undefined || isObject(value.params)) &&
  (value.result === undefined || isObject(value.result)) &&
  (value.error === undefined || isError(value.error));

const isAbsentOrOfType = (value: unknown, type: 'number' | 'string'): boolean =>
  value === undefined || typeof value === type;

const isError = (value: unknown): boolean =>
  isObject(value) && typeof value.code === 'number' && typeof value.message === 'string';

/**
 * Like parseIncomingMessage, but decodes the image of a screencast frame directly from the bytes. Parsing would create
 * two strings of half a megabyte per frame, and their garbage collection would be most of the cost of recording
 * (measured).
 */
export function parseEvent(message: Buffer): IncomingMessage {
  if (!matchesAt(message, 0, FRAME_HEAD)) return parseIncomingMessage(message);
  const end = message.indexOf(QUOTE, FRAME_HEAD.length);
  const frameBytes = end < 0 ? undefined : decodeBase64(message, FRAME_HEAD.length, end);
  if (!frameBytes) return parseIncomingMessage(message);
  return { ...parseMessageText(FRAME_HEAD.toString('latin1') + message.toString('utf8', end)), frameBytes };
}

const FRAME_HEAD = Buffer.from('{"method":"Page.screencastFrame","params":{"data":"');
/**
 * How many base64 characters are decoded at once. The number is small enough for the young generation of the garbage
 * collector. It is a multiple of 4, because 4 characters encode 3 bytes.
 */
const CHUNK_CHARACTERS = 32 * 1024;
const PADDING = 0x3d;

/** Decodes base64. Returns undefined if the bytes are not padded base64, which is the form that Chromium writes. */
function decodeBase64(message: Buffer, from: number, to: number): Buffer | undefined {
  const padding = (message[to - 1] === PADDING ? 1 : 0) + (message[to - 2] === PADDING ? 1 : 0);
  if (to <= from || (to - from) % 4 !== 0) return undefined;
  const bytes = Buffer.allocUnsafeSlow(((to - from) / 4) * 3 - padding);
  let writtenBytes = 0;
  for (let at = from; at < to; at += CHUNK_CHARACTERS)
    writtenBytes += bytes.write(
      message.toString('latin1', at, Math.min(at + CHUNK_CHARACTERS, to)),
      writtenBytes,
      'base64',
    );
  return writtenBytes === bytes.length ? bytes : undefined;
}

/**
 * Whether an event is too long to be parsed. Parsing it would hold up the other sessions of the process: a page may log
 * a value of hundreds of megabytes. Screencast frames are decoded without being parsed.
 */
export const isLongEvent = (message: Buffer): boolean =>
  message.length > EVENT_BYTES_MAX && !isScreencastFrame(message) && responseId(message) === undefined;

/** Returns the event that replaces a long console call. Undefined for any other long event. */
export function withoutContent(message: Buffer): IncomingMessage | undefined {
  if (!matchesAt(message, 0, CONSOLE_HEAD)) return undefined;
  const tail = message.toString('latin1', Math.max(0, message.length - TAIL_BYTES));
  // Quotes inside strings are escaped, so text from the page cannot match.
  const at = tail.lastIndexOf(TIMESTAMP_NAME);
  const timestamp =
    at < 0 ? Number.NaN : Number.parseFloat(tail.slice(at + TIMESTAMP_NAME.length, at + TIMESTAMP_NAME.length + 30));
  const value = `[${message.length} bytes were logged at once, which is too long for the log]`;
  const params = { type: 'warning', args: [{ type: 'string', value }] };
  return {
    method: 'Runtime.consoleAPICalled',
    params: Number.isNaN(timestamp) ? params : { ...params, timestamp },
  };
}

export const encode = (message: object): Buffer => Buffer.from(JSON.stringify(message));

/** Maximum length of a message that is parsed. A screenshot of 8000 x 8000 pixels is shorter. */
const PARSED_BYTES_MAX = 64 * 1024 ** 2;
const EVENT_BYTES_MAX = 4 * 1024 ** 2;
const CONSOLE_HEAD = Buffer.from('{"method":"Runtime.consoleAPICalled"');
const TIMESTAMP_NAME = '"timestamp":';
/**
 * How many bytes at the end of a message are searched for the timestamp of a console call. Only the stack trace of the
 * call follows the timestamp.
 */
const TAIL_BYTES = 64 * 1024;

/** CDP's error code for an unknown channel, which CDP calls a session. */
export const NO_SUCH_SESSION = -32001;
/** CDP's code for a command that failed. */
export const SERVER_ERROR = -32000;
export const INVALID_REQUEST = -32600;
export const PARSE_ERROR = -32700;
