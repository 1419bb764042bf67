// Finds the positions of the values in a JSON string, so that an error can be shown at the position where it occurred.
// Has no side effects.

export interface ParsedJson {
  readonly value: unknown;
  /** The offset of each value in the text, by the path of the value, such as `steps.0.do`. */
  readonly places: ReadonlyMap<string, number>;
}

export interface ParseFailure {
  /** States what was expected. */
  readonly message: string;
  readonly offset: number;
}

/** A problem in the text of a form field. */
export interface PlacedProblem {
  readonly message: string;
  /** The position of the problem in the text. Absent if the problem has no position. */
  readonly offset?: number;
}

const LEVELS_MAX = 200;
const BLANK = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

export function parseJson(text: string): ParsedJson | ParseFailure {
  const scanner = new Scanner(text);
  try {
    scanner.parseDocument();
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { message: error.message, offset: error.offset };
    throw error;
  }
  return { value: JSON.parse(text), places: scanner.offsets };
}

/**
 * Returns the offset of the value at the path. If there is no such value, returns the offset of the nearest value that
 * encloses the path.
 */
export function offsetOf({ places }: ParsedJson, path: readonly string[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const offset = places.get(path.slice(0, length).join('.'));
    if (offset !== undefined) return offset;
  }
  return 0;
}

export const lineNumberOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

/** Returns the parts of a path. `steps[0].do` and `steps.0.do` are the same path. */
export const partsOf = (path: string): string[] =>
  path
    .replaceAll(/\[(\d+)\]/g, '.$1')
    .split('.')
    .filter(part => part !== '');

class JsonSyntaxError extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

class Scanner {
  readonly offsets = new Map<string, number>();
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parseDocument(): void {
    this.#parseValue([]);
    if (this.#at < this.#text.length) throw this.#syntaxError('unexpected text after the value');
  }

  #parseValue(path: readonly string[]): void {
    this.#skip(BLANK);
    if (path.length > LEVELS_MAX) throw this.#syntaxError(`the value is nested more than ${LEVELS_MAX} levels deep`);
    this.offsets.set(path.join('.'), this.#at);
    const firstCharacter = this.#text[this.#at];
    if (firstCharacter === '{') this.#parseItems('}', index => this.#parseMember(path, index));
    else if (firstCharacter === '[') this.#parseItems(']', index => this.#parseValue([...path, String(index)]));
    else if (firstCharacter === '"') this.#parseString();
    else if (this.#skip(LITERAL) === 0)
      throw this.#syntaxError('expected a value, for example "text", 1, true, { or [');
    this.#skip(BLANK);
  }

  #parseItems(end: '}' | ']', parseItem: (index: number) => void): void {
    this.#at += 1;
    this.#skip(BLANK);
    if (this.#accept(end)) return;
    for (let index = 0; ; index += 1) {
      parseItem(index);
      if (this.#accept(end)) return;
      if (!this.#accept(',')) throw this.#syntaxError(`expected , or ${end}`);
    }
  }

  #parseMember(path: readonly string[], index: number): void {
    this.#skip(BLANK);
    if (this.#text[this.#at] !== '"')
      throw this.#syntaxError(
        index === 0 ? 'expected a name in double quotes, or }' : 'expected a name in double quotes',
      );
    const name = this.#parseString();
    this.#skip(BLANK);
    if (!this.#accept(':')) throw this.#syntaxError('expected :');
    this.#parseValue([...path, name]);
  }

  #parseString(): string {
    const start = this.#at;
    if (this.#skip(STRING) === 0) throw this.#syntaxError('expected a string that ends with " on the same line');
    return JSON.parse(this.#text.slice(start, this.#at));
  }

  #accept(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  /** Returns the number of skipped characters. */
  #skip(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
    const length = pattern.exec(this.#text)?.[0].length ?? 0;
    this.#at += length;
    return length;
  }

  #syntaxError(message: string): JsonSyntaxError {
    return new JsonSyntaxError(message, this.#at);
  }
}
