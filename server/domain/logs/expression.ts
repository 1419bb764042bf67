// Redacts a JavaScript expression that a client evaluates. Quoted text is replaced, because it may be typed text or a
// credential. If the expression cannot be scanned reliably, all of it is replaced.
import { CUT, REDACTED, redactText, truncate } from './redact.ts';

const EXPRESSION_CHARS_MAX = 2_048;
/** Longer expressions are not scanned: they are libraries that are injected into the page. */
export const SCANNED_CHARS_MAX = 64 * 1024;
const LONG_NUMBERS_PATTERN = /\b\d{6,}\b/g;
/** After these, a slash starts a regular expression; elsewhere it is a division. */
const BEFORE_REGEXP_PATTERN =
  /(?:^|[([{,;:=!&|?+\-*%<>~^]|\b(?:return|typeof|case|in|of|delete|void|throw|new|do|else))\s*$/;
/** How many characters before a slash are searched. */
const LOOKBEHIND_CHARS = 40;
/** Text that is kept as it is. */
const PLAIN_TEXT_PATTERN = /[^/"'`]+/y;

export interface ScannedExpression {
  /** The redacted expression. */
  readonly redacted: string;
  /** The contents of string literals. */
  readonly literals: readonly string[];
}

export function scanExpression(expression: string): ScannedExpression {
  if (expression.length > SCANNED_CHARS_MAX) return { redacted: REDACTED + CUT, literals: [] };
  const scanner = new ExpressionScanner(expression);
  const redacted = scanner.run();
  if (redacted === undefined) return { redacted: REDACTED, literals: scanner.literals };
  return {
    redacted: truncate(redactText(redacted.replace(LONG_NUMBERS_PATTERN, REDACTED)), EXPRESSION_CHARS_MAX),
    literals: scanner.literals,
  };
}

class ExpressionScanner {
  readonly #text: string;
  readonly literals: string[] = [];
  #position = 0;
  readonly #output: string[] = [];
  /**
   * The last characters of the output. They are kept separately, because the output is a list of pieces, and joining it
   * at each slash would be slow.
   */
  #tail = '';

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Returns the redacted expression. Undefined if a string, comment or regular expression is not terminated, because
   * the result would then be unreliable.
   */
  run(): string | undefined {
    while (this.#position < this.#text.length) if (!this.#step()) return undefined;
    return this.#output.join('');
  }

  #append(piece: string): void {
    this.#output.push(piece);
    this.#tail = (this.#tail + piece.slice(-LOOKBEHIND_CHARS)).slice(-LOOKBEHIND_CHARS);
  }

  #step(): boolean {
    PLAIN_TEXT_PATTERN.lastIndex = this.#position;
    const [plainText] = PLAIN_TEXT_PATTERN.exec(this.#text) ?? [];
    if (plainText !== undefined) {
      this.#append(plainText);
      this.#position += plainText.length;
      return true;
    }
    const character = this.#text[this.#position] ?? '';
    const nextTwo = this.#text.slice(this.#position, this.#position + 2);
    if (nextTwo === '//') return this.#skipTo(/\n|$/g, false);
    if (nextTwo === '/*') return this.#skipTo(/\*\//g, true);
    if (character === '"' || character === "'" || character === '`') return this.#scanString(character);
    if (character === '/' && BEFORE_REGEXP_PATTERN.test(this.#tail)) return this.#scanRegExp();
    this.#append(character);
    this.#position++;
    return true;
  }

  /** Skips a comment. Comments are removed, because they may contain anything. */
  #skipTo(end: RegExp, mustEnd: boolean): boolean {
    end.lastIndex = this.#position + 2;
    const endMatch = end.exec(this.#text);
    if (!endMatch && mustEnd) return false;
    this.#position = endMatch ? endMatch.index + endMatch[0].length : this.#text.length;
    this.#append(' ');
    return true;
  }

  /** Redacts a string literal. A template literal, including its expressions, is treated as one string. */
  #scanString(quote: string): boolean {
    const from = this.#position + 1;
    for (let at = from; at < this.#text.length; at++) {
      const character = this.#text[at];
      if (character === '\\') at++;
      else if (character === '\n' && quote !== '`') return false;
      else if (character === quote) {
        const literalContent = this.#text.slice(from, at);
        // This character may belong to a template literal inside the outer one. The end of the outer literal is not
        // searched for. Instead, the rest of the expression is redacted.
        if (quote === '`' && literalContent.includes('${') && this.#text.indexOf('`', at + 1) >= 0)
          return this.#redactRest();
        this.literals.push(unescapeContent(literalContent));
        this.#append(literalContent === '' ? quote + quote : quote + REDACTED + quote);
        this.#position = at + 1;
        return true;
      }
    }
    return false;
  }

  #redactRest(): boolean {
    this.#append(REDACTED);
    this.#position = this.#text.length;
    return true;
  }

  #scanRegExp(): boolean {
    let isInClass = false;
    for (let at = this.#position + 1; at < this.#text.length; at++) {
      const character = this.#text[at];
      if (character === '\\') at++;
      else if (character === '\n') return false;
      else if (character === '[') isInClass = true;
      else if (character === ']') isInClass = false;
      else if (character === '/' && !isInClass) {
        this.#append(`/${REDACTED}/`);
        this.#position = at + 1;
        return true;
      }
    }
    return false;
  }
}

function unescapeContent(content: string): string {
  return content.replace(
    /\\(u\{([0-9a-f]+)\}|u([0-9a-f]{4})|x([0-9a-f]{2})|[\s\S])/gi,
    (match, one, long, short, byte) => {
      const code = long ?? short ?? byte;
      if (code !== undefined) return characterOf(Number.parseInt(code, 16)) ?? match;
      return one === 'n' ? '\n' : one === 't' ? '\t' : one;
    },
  );
}

const characterOf = (code: number): string | undefined => (code <= 0x10ffff ? String.fromCodePoint(code) : undefined);
