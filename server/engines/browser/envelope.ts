// Reads the outer members of one CDP message from a client without parsing what is inside: id, method, sessionId.
// What it accepts is strict JSON as far as the outside goes, and a subset of what Chromium accepts, so that both
// always see the same message: no comments, no NUL (which would end the message early on the pipe), no member twice.
import { holdsAt } from './holds-at.ts';

export interface Envelope {
  readonly id: number;
  readonly method: string;
  /** Absent: the message is for the client's own root channel. */
  readonly sessionId: string | undefined;
  /** Where the opening brace stands. */
  readonly start: number;
}

export class BadEnvelope extends Error {
  override readonly name = 'BadEnvelope';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const MEMBERS_MAX = 16;
/** So many escaped quotes are passed by looking for the next one. */
const ESCAPED_QUOTES_SOUGHT = 64;
/** Deeper than any real command; Chromium itself stops at 300. */
const DEPTH_MAX = 250;
/** The members of every command. Comparing bytes is cheaper than making text of them. */
const KNOWN_NAMES = ['id', 'method', 'params', 'sessionId'].map(name => ({ name, quoted: Buffer.from(`"${name}"`) }));

/** Bytes that may stand outside strings: blanks, brackets, separators, digits, and the letters of numbers and literals. */
const OUTSIDE = new Uint8Array(256);
for (const character of ' \t\r\n{}[]:,0123456789+-.eEtrufalsn') OUTSIDE[character.charCodeAt(0)] = 1;
const BLANK = new Uint8Array(256);
for (const character of ' \t\r\n') BLANK[character.charCodeAt(0)] = 1;

export function readEnvelope(message: Buffer): Envelope {
  if (message.includes(0)) throw new BadEnvelope('a message must not contain a NUL');
  const start = skipBlank(message, 0);
  if (message[start] !== OPEN) throw new BadEnvelope('a message must be a JSON object');
  const names: string[] = [];
  let id: number | undefined;
  let method: string | undefined;
  let sessionId: string | undefined;
  let at = skipBlank(message, start + 1);
  while (message[at] !== CLOSE) {
    if (names.length >= MEMBERS_MAX) throw new BadEnvelope(`a message has at most ${MEMBERS_MAX} members`);
    const nameEnd = stringEnd(message, at);
    const name = nameAt(message, at, nameEnd);
    if (names.includes(name)) throw new BadEnvelope(`member ${JSON.stringify(name)} is there twice`);
    at = skipBlank(message, nameEnd);
    if (message[at] !== COLON) throw new BadEnvelope(`a colon must follow ${JSON.stringify(name)}`);
    at = skipBlank(message, at + 1);
    const end = valueEnd(message, at);
    names.push(name);
    if (name === 'id') id = Number(message.toString('latin1', at, end));
    else if (name === 'method') method = stringAt(message, at, end);
    else if (name === 'sessionId') sessionId = stringAt(message, at, end);
    at = skipBlank(message, end);
    if (message[at] === COMMA) {
      at = skipBlank(message, at + 1);
      if (message[at] === CLOSE) throw new BadEnvelope('a comma must be followed by a member');
    } else if (message[at] !== CLOSE) throw new BadEnvelope('members must be separated by commas');
  }
  if (skipBlank(message, at + 1) !== message.length) throw new BadEnvelope('nothing may follow the object');
  if (id === undefined || !Number.isInteger(id)) throw new BadEnvelope("Message must have integer 'id' property");
  if (method === undefined) throw new BadEnvelope("Message must have string 'method' property");
  if (sessionId === '') throw new BadEnvelope("'sessionId' must not be empty when it is there");
  return { id, method, sessionId, start };
}

function nameAt(message: Buffer, at: number, end: number): string {
  for (const { name, quoted } of KNOWN_NAMES)
    if (quoted.length === end - at && holdsAt(message, at, quoted)) return name;
  return stringAt(message, at, end);
}

function skipBlank(message: Buffer, from: number): number {
  let at = from;
  while (at < message.length && BLANK[message[at] ?? 0] === 1) at++;
  return at;
}

function stringAt(message: Buffer, at: number, end: number): string {
  if (message[at] !== QUOTE) throw new BadEnvelope('a string was expected');
  const text = message.toString('utf8', at + 1, end - 1);
  if (!text.includes('\\')) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    throw new BadEnvelope('a string has a broken escape');
  }
}

/** The index after the closing quote of the string that opens at `at`. */
function stringEnd(message: Buffer, at: number): number {
  if (message[at] !== QUOTE) throw new BadEnvelope('a string was expected');
  let from = at + 1;
  for (let escaped = 0; escaped < ESCAPED_QUOTES_SOUGHT; escaped++) {
    const quote = message.indexOf(QUOTE, from);
    if (quote < 0) throw new BadEnvelope('a string is not closed');
    let slashes = 0;
    while (message[quote - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
  return dullStringEnd(message, from);
}

/** Byte by byte: where every other byte is an escaped quote, looking for each costs ten times as much. */
function dullStringEnd(message: Buffer, from: number): number {
  const length = message.length;
  for (let at = from; at < length; at++) {
    const byte = message[at];
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at++;
  }
  throw new BadEnvelope('a string is not closed');
}

/** The index after the value that begins at `at`: a string, or everything up to the comma or brace that ends it. */
function valueEnd(message: Buffer, at: number): number {
  const first = message[at];
  if (first === QUOTE) return stringEnd(message, at);
  if (first !== OPEN && first !== OPEN_LIST) return scalarEnd(message, at);
  const closers = new Uint8Array(DEPTH_MAX);
  const length = message.length;
  let depth = 0;
  for (let index = at; index < length; ) {
    const byte = message[index] ?? 0;
    if (byte === QUOTE) {
      index = stringEnd(message, index);
      continue;
    }
    if (OUTSIDE[byte] !== 1) throw new BadEnvelope('a byte stands where JSON allows none');
    if (byte === OPEN || byte === OPEN_LIST) {
      if (depth === DEPTH_MAX) throw new BadEnvelope(`values may be nested ${DEPTH_MAX} deep`);
      closers[depth++] = byte === OPEN ? CLOSE : CLOSE_LIST;
    } else if (byte === CLOSE || byte === CLOSE_LIST) {
      if (closers[--depth] !== byte) throw new BadEnvelope('brackets do not match');
      if (depth === 0) return index + 1;
    }
    index++;
  }
  throw new BadEnvelope('a value is not closed');
}

function scalarEnd(message: Buffer, at: number): number {
  let index = at;
  while (index < message.length) {
    const byte = message[index] ?? 0;
    if (byte === COMMA || byte === CLOSE || BLANK[byte] === 1) break;
    if (OUTSIDE[byte] !== 1 || byte === COLON || byte === OPEN || byte === OPEN_LIST || byte === CLOSE_LIST)
      throw new BadEnvelope('a byte stands where JSON allows none');
    index++;
  }
  if (index === at) throw new BadEnvelope('a value was expected');
  return index;
}
