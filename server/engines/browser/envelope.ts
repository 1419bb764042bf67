// Reads the outer members of one CDP message from a client (id, method, sessionId) and skips nested values without
// parsing them. The reader accepts only strict JSON without duplicate members and without NUL, which would end the
// message early on the pipe. This is a subset of what Chromium accepts, so the reader and Chromium always interpret a
// message in the same way. If Chromium cannot parse a message, its response has no id and cannot be assigned to a
// client, so no such message is forwarded.
import { parseJson } from '../../kit/foreign.ts';
import { matchesAt } from './matches-at.ts';
import { INVALID_REQUEST, PARSE_ERROR } from './messages.ts';

export interface Envelope {
  readonly id: number;
  readonly method: string;
  /** Undefined if the message is for the client's own root channel. */
  readonly sessionId: string | undefined;
  /** The index of the opening brace. */
  readonly start: number;
}

export class BadEnvelope extends Error {
  override readonly name = 'BadEnvelope';
  readonly code: number;
  /** Undefined if the id could not be read. */
  readonly id: number | undefined;
  constructor(message: string, code = PARSE_ERROR, id?: number) {
    super(message);
    this.code = code;
    this.id = id;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MEMBERS_MAX = 16;
/** Maximum nesting depth. No real command is nested this deeply, and Chromium's own limit is 300. */
const DEPTH_MAX = 250;
/** Chromium reads ids as signed 32-bit integers. */
const ID_MAX = 2 ** 31 - 1;
/** A number with at most this many digits fits into a double. */
const SAFE_DIGITS_MAX = 300;
const LITERALS = ['true', 'false', 'null'].map(one => Buffer.from(one));
/**
 * Strings are scanned byte by byte up to this length. Most strings are short, and for a short string a call to
 * `indexOf` costs more than the scan.
 */
const BYTEWISE_BYTES_MAX = 512;
/** The names of the usual members of a command. Comparing their bytes is cheaper than decoding a name. */
const KNOWN_NAMES = ['id', 'method', 'params', 'sessionId'].map(name => ({ name, quoted: Buffer.from(`"${name}"`) }));

const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const LETTER_E = 0x65;
const CAPITAL_E = 0x45;
const LETTER_U = 0x75;

const BLANK = byteSetOf(' \t\r\n');
const DIGITS = byteSetOf('0123456789');
/** The characters that may follow a backslash. */
const ESCAPE_LETTERS = byteSetOf('"\\/bfnrtu');
const HEX = byteSetOf('0123456789abcdefABCDEF');

function byteSetOf(characters: string): Uint8Array {
  const byteSet = new Uint8Array(256);
  for (const character of characters) byteSet[character.charCodeAt(0)] = 1;
  return byteSet;
}

export function readEnvelope(message: Buffer): Envelope {
  if (message.includes(0)) throw new BadEnvelope('a message must not contain a NUL');
  const start = skipBlank(message, 0);
  if (message[start] !== OPEN_BRACE) {
    if (skipBlank(message, valueEnd(message, start)) !== message.length)
      throw new BadEnvelope('unexpected text after a value');
    throw new BadEnvelope('a message must be a JSON object', INVALID_REQUEST);
  }
  const names: string[] = [];
  let id: number | undefined;
  let method: string | undefined;
  let sessionId: string | undefined;
  let at = skipBlank(message, start + 1);
  while (message[at] !== CLOSE_BRACE) {
    if (names.length >= MEMBERS_MAX) throw new BadEnvelope(`a message can have at most ${MEMBERS_MAX} members`);
    const nameEnd = stringEnd(message, at);
    const name = nameAt(message, at, nameEnd);
    if (names.includes(name)) throw new BadEnvelope(`the member ${JSON.stringify(name)} occurs more than once`);
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
      if (message[at] === CLOSE_BRACE) throw new BadEnvelope('a comma must be followed by a member');
    } else if (message[at] !== CLOSE_BRACE) throw new BadEnvelope('members must be separated by commas');
  }
  if (skipBlank(message, at + 1) !== message.length) throw new BadEnvelope('unexpected text after the object');
  if (id === undefined || !Number.isInteger(id) || Math.abs(id) > ID_MAX)
    throw new BadEnvelope("Message must have integer 'id' property", INVALID_REQUEST);
  if (method === undefined) throw new BadEnvelope("Message must have string 'method' property", INVALID_REQUEST, id);
  if (sessionId === '') throw new BadEnvelope("'sessionId' must not be empty", INVALID_REQUEST, id);
  return { id, method, sessionId, start };
}

function nameAt(message: Buffer, at: number, end: number): string {
  for (const { name, quoted } of KNOWN_NAMES)
    if (quoted.length === end - at && matchesAt(message, at, quoted)) return name;
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
  const parsedText = parseJson(`"${text}"`);
  if (typeof parsedText !== 'string') throw new BadEnvelope('a string has an invalid escape');
  return parsedText;
}

/** Returns the index after the closing quote of the string that begins at `at`. */
function stringEnd(message: Buffer, at: number): number {
  if (message[at] !== QUOTE) throw new BadEnvelope('a string was expected');
  let quoteIndex = at;
  for (let index = at + 1; ; ) {
    for (const bytewiseEnd = index + BYTEWISE_BYTES_MAX; index < bytewiseEnd && index < message.length; ) {
      if (message[index] === QUOTE) return index + 1;
      index = message[index] === BACKSLASH ? escapeEnd(message, index) : index + 1;
    }
    // In a long string, skip directly to the next quote or escape.
    if (quoteIndex < index) quoteIndex = message.indexOf(QUOTE, index);
    if (quoteIndex < 0) throw new BadEnvelope('a string is not closed');
    const backslashOffset = message.subarray(index, quoteIndex).indexOf(BACKSLASH);
    index = backslashOffset < 0 ? quoteIndex : index + backslashOffset;
  }
}

function escapeEnd(message: Buffer, at: number): number {
  const letter = message[at + 1] ?? 0;
  const end = at + (letter === LETTER_U ? 6 : 2);
  let isValid = ESCAPE_LETTERS[letter] === 1;
  for (let index = at + 2; index < end; index++) isValid &&= HEX[message[index] ?? 0] === 1;
  if (!isValid) throw new BadEnvelope('a string has an invalid escape');
  return end;
}

/** Returns the index after the value that begins at `at`. */
function valueEnd(message: Buffer, at: number): number {
  const closingBrackets: number[] = [];
  let index = at;
  for (;;) {
    const firstByte = message[index];
    if (firstByte === OPEN_BRACE || firstByte === OPEN_BRACKET) {
      closingBrackets.push(firstByte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET);
      if (closingBrackets.length > DEPTH_MAX)
        throw new BadEnvelope(`values may be nested at most ${DEPTH_MAX} levels deep`);
      index = skipBlank(message, index + 1);
      if (message[index] !== closingBrackets.at(-1)) {
        if (firstByte === OPEN_BRACE) index = memberValueStart(message, index);
        continue;
      }
    } else {
      index = firstByte === QUOTE ? stringEnd(message, index) : scalarEnd(message, index);
      if (closingBrackets.length === 0) return index;
      index = skipBlank(message, index);
    }
    while (message[index] === closingBrackets.at(-1)) {
      closingBrackets.pop();
      index++;
      if (closingBrackets.length === 0) return index;
      index = skipBlank(message, index);
    }
    if (message[index] !== COMMA) throw new BadEnvelope('a comma or a closing bracket was expected');
    index = skipBlank(message, index + 1);
    if (closingBrackets.at(-1) === CLOSE_BRACE) index = memberValueStart(message, index);
  }
}

/** Skips the name of a member and the colon. Returns the index at which its value begins. */
function memberValueStart(message: Buffer, at: number): number {
  const colonIndex = skipBlank(message, stringEnd(message, at));
  if (message[colonIndex] !== COLON) throw new BadEnvelope('a colon must follow the name of a member');
  return skipBlank(message, colonIndex + 1);
}

/** Returns the index after a number or a literal. The caller checks the bytes that follow. */
function scalarEnd(message: Buffer, at: number): number {
  const literal = LITERALS.find(one => matchesAt(message, at, one));
  if (literal) return at + literal.length;
  const integerStart = message[at] === MINUS ? at + 1 : at;
  let index = message[integerStart] === ZERO ? integerStart + 1 : digitsEnd(message, integerStart);
  if (message[index] === DOT) index = digitsEnd(message, index + 1);
  const hasExponent = message[index] === LETTER_E || message[index] === CAPITAL_E;
  if (hasExponent) {
    const sign = message[index + 1];
    index = digitsEnd(message, sign === MINUS || sign === PLUS ? index + 2 : index + 1);
  }
  // Chromium refuses a number that is too large for a double.
  if ((hasExponent || index - at > SAFE_DIGITS_MAX) && !Number.isFinite(Number(message.toString('latin1', at, index))))
    throw new BadEnvelope('a number is too large');
  return index;
}

function digitsEnd(message: Buffer, at: number): number {
  let index = at;
  while (DIGITS[message[index] ?? 0] === 1) index++;
  if (index === at) throw new BadEnvelope('a value was expected');
  return index;
}
