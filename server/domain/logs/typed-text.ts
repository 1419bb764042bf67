// What was typed into pages or given to their functions, kept in memory for as long as the session runs, so that it does
// not come into the log by another way: as the parameter of a form, or in what the page says. Only what tells something
// is remembered: ordinary words would take half of a log away.
import type { Json, JsonObject } from '../../engines/store/rows/json.ts';
import { REDACTED } from './redact.ts';

const TYPED_MAX = 100;
const LINES_MAX = 20;
const GIVEN_MAX = 200;
const CHARS_MIN = 6;
const CHARS_MAX = 512;
const LEAVES_MAX = 200;
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/|^(?:[a-z0-9-]+\.)+[a-z]{2,}(?:[:/]|$)/i;
/** Selectors, paths and code are given to functions too, and stand in addresses for good reason. */
const GIVEN = /^(?=.*[\d!@$%^&*+?~])[^/<>{}[\]();=#.\s][^/<>{}[\]();]*$/u;
const ORDINARY = /^[\p{L}\s.,'’-]*$/u;

export class TypedText {
  readonly #typed = new Memory(TYPED_MAX, tells);
  readonly #given = new Memory(GIVEN_MAX, text => tells(text) && GIVEN.test(text));
  /** Words across which something else was asked. */
  readonly #lines = new Memory(LINES_MAX, tells);
  /** Keys as they come, by the channel they come on. */
  readonly #keys = new Map<string, { word: string; line: string }>();

  typed(text: string): void {
    this.#typed.add(text);
  }

  key(channel: string, character: string): void {
    const { word, line } = this.#keys.get(channel) ?? { word: '', line: '' };
    const grown = { word: (word + character).slice(-CHARS_MAX), line: (line + character).slice(-CHARS_MAX) };
    this.#keys.set(channel, grown);
    this.#typed.grow(word, grown.word);
    this.#lines.grow(line, grown.line);
  }

  backspace(channel: string): void {
    const { word, line } = this.#keys.get(channel) ?? { word: '', line: '' };
    this.#keys.set(channel, { word: word.slice(0, -1), line: line.slice(0, -1) });
  }

  /** Something else was asked: what is typed then may be for another field. */
  interrupted(channel: string): void {
    const keys = this.#keys.get(channel);
    if (keys) keys.word = '';
  }

  /** Another field, or another line. */
  pause(channel: string): void {
    this.#keys.delete(channel);
  }

  /** Texts in arguments, however deep. */
  given(value: unknown): void {
    let left = LEAVES_MAX;
    const walk = (part: unknown, depth: number): void => {
      if (left <= 0 || depth > 12) return;
      if (typeof part === 'string') {
        left--;
        this.#given.add(part);
      } else if (Array.isArray(part)) for (const each of part) walk(each, depth + 1);
      else if (typeof part === 'object' && part !== null) for (const each of Object.values(part)) walk(each, depth + 1);
    };
    walk(value, 0);
  }

  occursIn(text: string): boolean {
    return this.#memories.some(memory => memory.occursIn(text));
  }

  get #memories(): readonly Memory[] {
    return [this.#typed, this.#lines, this.#given];
  }

  /** The same object, with what was typed taken out of its texts. */
  redact<T extends object>(object: T): T {
    return this.#redacted(object as JsonObject) as T; // Strings stay strings; nothing else is touched.
  }

  #redacted(value: Json): Json {
    if (typeof value === 'string') return this.#memories.reduce((text, memory) => memory.redact(text), value);
    if (Array.isArray(value)) return value.map(each => this.#redacted(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#redacted(each)]));
  }
}

/** The newest texts that tell something, each in the ways in which it may be written. */
class Memory {
  readonly #max: number;
  readonly #tells: (text: string) => boolean;
  readonly #ways = new Map<string, readonly string[]>();

  constructor(max: number, tells: (text: string) => boolean) {
    this.#max = max;
    this.#tells = tells;
  }

  add(text: string): void {
    if (!this.#tells(text)) return;
    this.#ways.delete(text);
    this.#ways.set(text, waysOf(text));
    const [oldest] = this.#ways.keys();
    if (this.#ways.size > this.#max && oldest !== undefined) this.#ways.delete(oldest);
  }

  /** By typing on: the longer one stands in the place of the shorter. */
  grow(before: string, text: string): void {
    if (this.#tells(text)) this.#ways.delete(before);
    this.add(text);
  }

  occursIn(text: string): boolean {
    for (const ways of this.#ways.values()) if (ways.some(way => text.includes(way))) return true;
    return false;
  }

  /** Longer ones first: one may be part of another. */
  redact(text: string): string {
    const ways = [...this.#ways.values()].flat().filter(way => text.includes(way));
    return ways
      .sort((one, other) => other.length - one.length)
      .reduce((clean, way) => clean.replaceAll(way, REDACTED), text);
  }
}

const tells = (text: string): boolean =>
  text.length >= CHARS_MIN && text.length <= CHARS_MAX && !ORDINARY.test(text) && !ADDRESS.test(text);

function waysOf(text: string): readonly string[] {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  const inForm = new URLSearchParams([['', whole]]).toString().slice(1);
  return [...new Set([text, JSON.stringify(text).slice(1, -1), encodeURIComponent(whole), inForm])];
}
