// Finds the imports of a TypeScript file, and blanks all text that is not code. A scanner, not a parser: it recognizes
// comments, strings, templates and regular expressions, which is all that can hide or fake an import.
import { lineOf } from './source-files.ts';

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /**
   * Whether the import is erased before the program runs: `import type`, `export type … from`, `typeof import('…')`.
   */
  readonly isTypeOnly: boolean;
}

/** The text with the contents of comments, strings and regular expressions replaced by spaces. */
export const codeOnly = memoize(text => mask(text, true));

/** The text with comments replaced by spaces, for rules about the contents of strings. */
export const withoutComments = memoize(text => mask(text, false));

/** Caches the results, because several checks read the same files. */
function memoize<T>(make: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return text => {
    const cachedResult = results.get(text);
    if (cachedResult !== undefined) return cachedResult;
    const value = make(text);
    results.set(text, value);
    return value;
  };
}

const REGEX_MAY_FOLLOW =
  /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|do|else|await|yield|void|delete|throw|new|instanceof))\s*$/;

function mask(text: string, blankStrings: boolean): string {
  const out = text.split('');
  const blank = (from: number, to: number): void => {
    for (let at = from; at < to; at++) if (out[at] !== '\n') out[at] = ' ';
  };
  /** For each open template, the brace depth at which its text continues. */
  const templateDepths: number[] = [];
  let braceDepth = 0;
  let at = 0;
  while (at < text.length) {
    const nextTwo = text.slice(at, at + 2);
    const char = text[at];
    if (nextTwo === '//') {
      const end = endOf(text, '\n', at);
      blank(at, end);
      at = end;
    } else if (nextTwo === '/*') {
      const end = Math.min(text.length, endOf(text, '*/', at + 2) + 2);
      blank(at, end);
      at = end;
    } else if (char === "'" || char === '"') {
      const end = endOfQuoted(text, at, char);
      if (blankStrings) blank(at + 1, end);
      at = end + 1;
    } else if (char === '`' || (char === '}' && templateDepths.at(-1) === braceDepth)) {
      if (char === '}') templateDepths.pop();
      const end = endOfTemplatePart(text, at + 1);
      if (blankStrings) blank(at + 1, end);
      if (text[end] === '$') {
        templateDepths.push(braceDepth);
        at = end + 2;
      } else at = end + 1;
    } else if (char === '/' && REGEX_MAY_FOLLOW.test(out.slice(Math.max(0, at - 40), at).join(''))) {
      const end = endOfRegex(text, at);
      if (blankStrings) blank(at + 1, end);
      at = end + 1;
    } else {
      if (char === '{') braceDepth++;
      if (char === '}') braceDepth--;
      at++;
    }
  }
  return out.join('');
}

function endOf(text: string, mark: string, from: number): number {
  const markIndex = text.indexOf(mark, from);
  return markIndex === -1 ? text.length : markIndex;
}

function endOfQuoted(text: string, from: number, quote: string): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === quote || text[at] === '\n') return at;
  }
  return text.length;
}

/** The end of this part of a template: the closing backtick, or the `$` of `${`. */
function endOfTemplatePart(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '`' || (text[at] === '$' && text[at + 1] === '{')) return at;
  }
  return text.length;
}

function endOfRegex(text: string, from: number): number {
  let isInClass = false;
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at];
    if (char === '\\') at++;
    else if (char === '\n') return at;
    else if (char === '[') isInClass = true;
    else if (char === ']') isInClass = false;
    else if (char === '/' && !isInClass) return at;
  }
  return text.length;
}

const STATIC_IMPORT =
  /(?<![\w$.])(?:import|export)\s+(type\s+)?(?:[\w$]+|\*(?:\s*as\s+[\w$]+)?|\{[^{}]*\}|[\w$]+\s*,\s*(?:\*\s*as\s+[\w$]+|\{[^{}]*\}))\s*from\s*(['"])/g;
const BARE_IMPORT = /(?<![\w$.])import\s*()(['"])/g;
const DYNAMIC_IMPORT = /(typeof\s+)?(?<![\w$.])(?:import|require)\s*\(\s*(['"])/g;

export const importsOf = memoize(findImports);

function findImports(text: string): readonly Import[] {
  const code = codeOnly(text);
  return [STATIC_IMPORT, BARE_IMPORT, DYNAMIC_IMPORT]
    .flatMap(pattern => [...code.matchAll(pattern)])
    .map(match => {
      const quoteAt = match.index + match[0].length - 1;
      const end = endOfQuoted(text, quoteAt, text[quoteAt] ?? '');
      return {
        specifier: text.slice(quoteAt + 1, end),
        line: lineOf(text, quoteAt),
        isTypeOnly: (match[1] ?? '') !== '',
      };
    })
    .sort((a, b) => a.line - b.line);
}
