// Remembers, in memory and while the session runs, the text that was typed into pages or passed to their functions, so
// that the text can be redacted where it appears again: in form parameters or console messages. Only distinctive text
// is remembered, because redacting ordinary words would make the log useless.
import type { Json, JsonObject } from '../../kit/json.ts';
import { REDACTED } from './redact.ts';

const TYPED_TEXTS_MAX = 100;
const LINES_MAX = 20;
const PASSED_TEXTS_MAX = 200;
const CHARS_MIN = 6;
const CHARS_MAX = 512;
const STRINGS_MAX = 200;
const ADDRESS_PATTERN = /^[a-z][a-z0-9+.-]*:\/\/|^(?:[a-z0-9-]+\.)+[a-z]{2,}(?:[:/]|$)/i;
/**
 * Matches arguments of page functions that look like secrets. Selectors, paths and code are also passed as arguments.
 * They do not match, because redacting them would make the URLs in the log useless.
 */
const PASSED_SECRET_PATTERN = /^(?=.*[\d!@$%^&*+?~])[^/<>{}[\]();=#.\s][^/<>{}[\]();]*$/u;
const ORDINARY_WORDS_PATTERN = /^[\p{L}\p{M}\s.,'’。、，・！？「」（）،؛؟।-]*$/u;

interface PendingText {
  readonly word: string;
  readonly line: string;
  /** The text that an input method may still replace. It follows the word and the line. */
  readonly composition: string;
  /**
   * What was remembered of the word and of the line, and is forgotten when they grow. Undefined if nothing was, or if
   * the same text had been remembered before.
   */
  readonly grownWord?: string | undefined;
  readonly grownLine?: string | undefined;
  /** What was remembered of the composition: alone, with the word and with the line. Forgotten when it changes. */
  readonly composedTexts?: { readonly words: readonly (string | undefined)[]; readonly line: string | undefined };
  /** Whether the last character was removed by a backspace. */
  readonly isShortened?: boolean;
  /** Whether a command other than an insertion has ended the last word. */
  readonly isInterrupted?: boolean;
}
const NOTHING_TYPED: PendingText = { word: '', line: '', composition: '' };

export class TypedText {
  readonly #typedTexts = new TextMemory(TYPED_TEXTS_MAX, isDistinctive);
  readonly #passedTexts = new TextMemory(
    PASSED_TEXTS_MAX,
    text => isDistinctive(text) && PASSED_SECRET_PATTERN.test(text),
  );
  /** Typed lines. A line is kept as one string even if other commands are sent while it is being typed. */
  readonly #lines = new TextMemory(LINES_MAX, isDistinctive);
  /** What was typed so far, by channel. */
  readonly #pending = new Map<string, PendingText>();

  rememberText(text: string): void {
    this.#typedTexts.keep(text);
  }

  /** Adds a character, or a text that was inserted at once, to the word and the line. */
  addText(channel: string, text: string): void {
    if (text.length > CHARS_MAX) return this.endField(channel);
    const { word, line, grownWord, grownLine } = this.#committed(channel);
    const extendedTexts = { word: lastChars(word + text), line: lastChars(line + text) };
    this.#pending.set(channel, {
      ...{ ...extendedTexts, composition: '' },
      grownWord: this.#typedTexts.grow(grownWord, extendedTexts.word),
      grownLine: this.#lines.grow(grownLine, extendedTexts.line),
    });
  }

  /**
   * Adds text that was inserted at once, or the text of an input method, which replaces the composition. Several
   * characters are a word of their own, because they may have been inserted into another field than the text before.
   */
  insertText(channel: string, text: string): void {
    this.compose(channel, '');
    if ([...text].length === 1) return this.addText(channel, text);
    this.rememberText(text);
    if (text.length > CHARS_MAX) return this.endField(channel);
    const { line, grownLine, isInterrupted } = this.#pending.get(channel) ?? NOTHING_TYPED;
    const extendedLine = lastChars(line + text);
    this.#pending.set(channel, {
      ...{ word: '', line: extendedLine, composition: '' },
      grownLine: this.#lines.grow(isInterrupted ? undefined : grownLine, extendedLine),
    });
  }

  /** Called when the composition of an input method has changed. It is empty if it was cancelled. */
  compose(channel: string, composition: string): void {
    const { composedTexts, ...pendingText } = this.#pending.get(channel) ?? NOTHING_TYPED;
    for (const word of composedTexts?.words ?? []) this.#typedTexts.forget(word);
    this.#lines.forget(composedTexts?.line);
    const { word, line } = pendingText;
    const newTexts = () => ({
      words: [word === '' ? undefined : this.#typedTexts.add(composition), this.#typedTexts.add(word + composition)],
      line: this.#lines.add(line + composition),
    });
    this.#pending.set(channel, {
      ...{ ...pendingText, composition: composition.slice(0, CHARS_MAX) },
      ...(composition === '' ? {} : { composedTexts: newTexts() }),
    });
  }

  /** Called for a backspace. The text before the first of several backspaces, and that after the last one, are kept. */
  removeCharacter(channel: string): void {
    const { word, line, grownWord, grownLine, isShortened } = this.#committed(channel);
    if (isShortened) {
      this.#typedTexts.forget(grownWord);
      this.#lines.forget(grownLine);
    }
    const shortenedTexts = { word: withoutLastChar(word), line: withoutLastChar(line) };
    this.#pending.set(channel, {
      ...{ ...shortenedTexts, composition: '', isShortened: true },
      grownWord: this.#typedTexts.add(shortenedTexts.word),
      grownLine: this.#lines.add(shortenedTexts.line),
    });
  }

  /**
   * Called when a command is sent that does not type a character. The characters that follow may belong to another
   * field.
   */
  endWord(channel: string): void {
    if (this.#pending.has(channel))
      this.#pending.set(channel, { ...this.#committed(channel), word: '', grownWord: undefined, isInterrupted: true });
  }

  /** Called when the field or the line has ended. */
  endField(channel: string): void {
    this.#pending.delete(channel);
  }

  /** What was typed so far, with the composition: what follows it other than a composition ends it. */
  #committed(channel: string): PendingText {
    const pendingText = this.#pending.get(channel) ?? NOTHING_TYPED;
    const { word, line, composition, composedTexts } = pendingText;
    if (composition === '') return pendingText;
    return {
      ...{ word: lastChars(word + composition), line: lastChars(line + composition), composition: '' },
      grownWord: composedTexts?.words[1],
      grownLine: composedTexts?.line,
    };
  }

  /** Remembers the strings in the arguments, up to `STRINGS_MAX` strings and a depth of 12. */
  rememberPassed(value: unknown): void {
    let remainingStrings = STRINGS_MAX;
    const walk = (part: unknown, depth: number): void => {
      if (remainingStrings <= 0 || depth > 12) return;
      if (typeof part === 'string') {
        remainingStrings--;
        this.#passedTexts.keep(part);
      } else if (Array.isArray(part)) for (const each of part) walk(each, depth + 1);
      else if (typeof part === 'object' && part !== null) for (const each of Object.values(part)) walk(each, depth + 1);
    };
    walk(value, 0);
  }

  occursIn(text: string): boolean {
    return this.#memories.some(memory => memory.occursIn(text));
  }

  get #memories(): readonly TextMemory[] {
    return [this.#typedTexts, this.#lines, this.#passedTexts];
  }

  /** Longer strings are redacted first, because one may contain another. */
  redactText(text: string): string {
    return this.#memories
      .flatMap(memory => memory.encodingsIn(text))
      .sort((one, other) => other.length - one.length)
      .reduce((redactedText, encoding) => redactedText.replaceAll(encoding, REDACTED), text);
  }

  /** A copy of the object in which remembered text is redacted. */
  redact<T extends object>(object: T): T {
    return this.#redactValue(object as JsonObject) as T; // Only the contents of strings change.
  }

  #redactValue(value: Json): Json {
    if (typeof value === 'string') return this.redactText(value);
    if (Array.isArray(value)) return value.map(item => this.#redactValue(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#redactValue(member)]));
  }
}

/** The newest distinctive strings, each with its encodings. */
class TextMemory {
  readonly #max: number;
  readonly #isDistinctive: (text: string) => boolean;
  readonly #encodings = new Map<string, readonly string[]>();
  /** The strings that were remembered more than once, or are never forgotten for a longer one. */
  readonly #keptTexts = new Set<string>();

  constructor(max: number, isDistinctive: (text: string) => boolean) {
    this.#max = max;
    this.#isDistinctive = isDistinctive;
  }

  /**
   * Remembers the text, if it is distinctive, without surrounding spaces, because pages often remove them. Returns the
   * trimmed text if it was not remembered before.
   */
  add(typedText: string): string | undefined {
    const text = typedText.trim();
    if (!this.#isDistinctive(text)) return undefined;
    const wasRemembered = this.#encodings.delete(text);
    this.#encodings.set(text, encodingsOf(text));
    if (wasRemembered) this.#keptTexts.add(text);
    const [oldest] = this.#encodings.keys();
    if (this.#encodings.size > this.#max && oldest !== undefined) this.#remove(oldest);
    return wasRemembered ? undefined : text;
  }

  /** Remembers the text, which is then not forgotten when a longer text has grown from it. */
  keep(text: string): void {
    const newText = this.add(text);
    if (newText !== undefined) this.#keptTexts.add(newText);
  }

  /** Remembers the text in place of the shorter text from which it has grown. */
  grow(shorterText: string | undefined, text: string): string | undefined {
    if (this.#isDistinctive(text.trim())) this.forget(shorterText);
    return this.add(text);
  }

  forget(text: string | undefined): void {
    if (text !== undefined && !this.#keptTexts.has(text)) this.#remove(text);
  }

  #remove(text: string): void {
    this.#encodings.delete(text);
    this.#keptTexts.delete(text);
  }

  occursIn(text: string): boolean {
    for (const encodings of this.#encodings.values())
      if (encodings.some(encoding => text.includes(encoding))) return true;
    return false;
  }

  /** The encodings of remembered strings that occur in the text. */
  encodingsIn(text: string): readonly string[] {
    return [...this.#encodings.values()].flat().filter(encoding => text.includes(encoding));
  }
}

const lastChars = (text: string): string => text.slice(-CHARS_MAX);

const withoutLastChar = (text: string): string => [...text].slice(0, -1).join('');

const isDistinctive = (text: string): boolean =>
  text.length >= CHARS_MIN &&
  text.length <= CHARS_MAX &&
  !ORDINARY_WORDS_PATTERN.test(text) &&
  !ADDRESS_PATTERN.test(text);

function encodingsOf(text: string): readonly string[] {
  const wellFormedText = text.isWellFormed() ? text : text.toWellFormed();
  const formEncodedText = new URLSearchParams([['', wellFormedText]]).toString().slice(1);
  // Some pages write text into an address without encoding it. The browser then encodes only a few characters.
  const url = new URL('http://localhost');
  url.search = wellFormedText;
  url.pathname = wellFormedText;
  const path = /^[/\\]/.test(text) ? url.pathname : url.pathname.slice(1);
  const barelyEncodedTexts = [url.search.slice(1), path];
  return [
    ...new Set([
      ...[text, JSON.stringify(text).slice(1, -1), encodeURIComponent(wellFormedText), formEncodedText],
      // Line breaks and dot segments are removed from an address, so the result may be an ordinary word.
      ...barelyEncodedTexts.filter(isDistinctive),
    ]),
  ];
}
