// Hostile values from a seed: strings, URLs, JSON values of unexpected types, and messages that are not JSON. The same
// seed gives the same values in the same order.

/** JSON text that JSON.stringify cannot write, such as numbers out of range and very deep nesting. */
class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const NESTING_MAX = 100_000;
const SHORT_REPEATS = 40;
const SERIALIZED_DEPTH_MAX = 12;

const WORDS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfffy\ud800',
  '\u202egnp.exe',
  '\u2028\u2029',
  '\r\nx: y\r\n\r\n',
  '%',
  '%zz%ff%fe%00',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '../../../etc/passwd',
  'CON',
  '.',
  '..',
  'a/b\\c',
  '-1',
  'NaN',
  '1e999',
  'null',
  'true',
  '[object Object]',
  '<script>alert(1)</script>',
  "'; drop table sessions; --",
  '${7*7}{{7*7}}',
  '$&$1$`',
  '🏴‍☠️é\u0301',
  '00000000-0000-0000-0000-000000000000',
  'bak_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  '9999-99-99T99:99:99Z',
  '+275760-09-13T00:00:00.000Z',
] as const;

/** Strings that are repeated many times, so that regular expressions and parsers take a long time. */
const REPEATED_TEXTS = [
  'blob:',
  'view-source:',
  '?u=/',
  '%25',
  '?token=',
  'filesystem:',
  'a.',
  '/../',
  '#',
  '@',
  'data:,',
  '[',
  '((a+)',
];

const SCHEMES = [
  'http',
  'https',
  'ws',
  'blob',
  'data',
  'file',
  'chrome',
  'javascript',
  'view-source',
  'filesystem',
  'about',
  '',
];
const HOSTS = [
  'a.test',
  'b.test',
  '127.0.0.1',
  '[::1]',
  '0x7f.1',
  '169.254.169.254',
  'xn--',
  '.',
  'a'.repeat(300),
  '%00',
  'ä.test',
];

const NUMBERS = [0, -0, -1, 1, 0.1, 5e-324, 1e308, -1e308, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53, -(2 ** 63), 65_536];
const RAW_NUMBERS = ['1e999', '-1e999', '9'.repeat(400), '0.'.padEnd(400, '3'), '-0', '1E+400'];

/** JSON objects that are used where a string or a list is expected. */
const OBJECTS = [
  '{"toString":1,"valueOf":1}',
  '{"length":-1}',
  '{"then":1}',
  '{"toJSON":1}',
  '[]',
  '{}',
  '[null]',
] as const;

export class HostileValues {
  #state: number;
  /** Scales the length of the longest string and the depth of nesting. Small values make a batch quick. */
  readonly #repeatsMax: number;

  constructor(seed: number, repeats: number) {
    this.#state = seed >>> 0;
    this.#repeatsMax = repeats;
  }

  /** An integer from 0 up to, but not including, the limit (mulberry32). */
  int(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % Math.max(1, limit);
  }

  chance(oneIn: number): boolean {
    return this.int(oneIn) === 0;
  }

  pick<T>(from: readonly [T, ...T[]]): T;
  pick<T>(from: readonly T[]): T | undefined;
  pick<T>(from: readonly T[]): T | undefined {
    return from[this.int(from.length)];
  }

  text(): string {
    switch (this.int(6)) {
      case 0:
        return (this.pick(REPEATED_TEXTS) ?? '').repeat(this.#repeatCount()) + this.pick(WORDS);
      case 1:
        return this.url();
      case 2:
        return String.fromCharCode(...Array.from({ length: this.int(40) }, () => this.int(65_536)));
      case 3:
        return this.pick(WORDS).repeat(this.int(SHORT_REPEATS));
      default:
        return this.pick(WORDS);
    }
  }

  url(): string {
    const origin = `${this.pick(SCHEMES)}${this.chance(4) ? '' : '://'}${this.pick(HOSTS)}`;
    const port = this.chance(3) ? `:${this.pick(['0', '80', '65536', '-1', 'x'])}` : '';
    const repeatedPart = this.chance(3) ? (this.pick(REPEATED_TEXTS) ?? '').repeat(this.#repeatCount()) : '';
    const query = this.chance(2) ? `?u=${this.pick(WORDS)}&token=${this.pick(WORDS)}` : '';
    return `${origin}${port}/${repeatedPart}${this.pick(WORDS)}${query}`;
  }

  number(): number | RawJson {
    return this.chance(4) ? new RawJson(this.pick(RAW_NUMBERS) ?? '0') : (this.pick(NUMBERS) ?? 0);
  }

  /** Any JSON value, mostly of an unexpected type. */
  value(depth = 0): unknown {
    switch (this.int(depth > 3 ? 5 : 9)) {
      case 0:
        return this.number();
      case 1:
        return this.pick([null, true, false]);
      case 2:
      case 3:
        return this.text();
      case 4:
        return new RawJson(this.pick(OBJECTS));
      case 5:
        return Array.from({ length: this.int(6) }, () => this.value(depth + 1));
      case 6:
        return this.object(depth + 1);
      case 7:
        return this.chance(6) ? this.nesting() : this.text();
      default:
        return new RawJson(
          this.pick([
            '{"__proto__":{"polluted":1}}',
            '{"constructor":{"prototype":{"polluted":1}}}',
            '"\\ud800"',
            '{"":""}',
          ]),
        );
    }
  }

  object(depth = 1): Record<string, unknown> {
    const names = Array.from({ length: this.int(5) }, () =>
      this.chance(2) ? this.text().slice(0, 40) : this.pick(WORDS),
    );
    return Object.fromEntries(names.map(name => [name, this.value(depth + 1)]));
  }

  /** A deeply nested value. At full depth it exceeds the stack of a recursive parser. */
  nesting(): RawJson {
    const depth = Math.min(NESTING_MAX, this.#repeatsMax * 10);
    return new RawJson(
      this.chance(2) ? `${'['.repeat(depth)}${']'.repeat(depth)}` : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
    );
  }

  /** The value as JSON text, sometimes with a duplicate member, an escaped member name, or whitespace. */
  json(value: unknown, depth = 0): string {
    if (value instanceof RawJson) return value.text;
    if (depth > SERIALIZED_DEPTH_MAX) return 'null';
    if (Array.isArray(value)) return `[${value.map(one => this.json(one, depth + 1)).join(',')}]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
    const members = Object.entries(value).map(([name, member]) => this.#member(name, member, depth));
    return `{${this.chance(8) ? ' \n\t' : ''}${members.join(',')}}`;
  }

  /** Bytes that are not a valid message, or that are only a part of one. */
  brokenMessage(message: string): Buffer {
    switch (this.int(8)) {
      case 0:
        return Buffer.from(message.slice(0, this.int(message.length)));
      case 1:
        return Buffer.from(message, 'utf16le');
      case 2:
        return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(message)]);
      case 3:
        return Buffer.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80, ...Buffer.from(message.slice(0, 200))]);
      case 4:
        return Buffer.from(message + message);
      case 5:
        return Buffer.from(this.nesting().text);
      case 6:
        return Buffer.from(this.json(this.value()));
      default:
        return Buffer.from(this.text());
    }
  }

  #member(name: string, member: unknown, depth: number): string {
    const quotedName = JSON.stringify(name);
    const escapedName =
      this.chance(12) && name !== '' ? `"\\u${hex(name.charCodeAt(0))}${quotedName.slice(2)}` : quotedName;
    const nameText = /^"[\x20-\x7e]/.test(quotedName) && quotedName[1] !== '\\' ? escapedName : quotedName;
    const memberText = `${nameText}:${this.json(member, depth + 1)}`;
    return this.chance(20) ? `${quotedName}:${this.json(this.value(4), depth + 1)},${memberText}` : memberText;
  }

  #repeatCount(): number {
    return this.chance(3) ? this.int(this.#repeatsMax) : this.int(SHORT_REPEATS);
  }
}

const hex = (code: number): string => code.toString(16).padStart(4, '0');
