// The secret strings of one session: those that the service itself typed into the session's pages. They must not be
// shown. They are kept only in memory, and the printed object shows only their number.
import { inspect } from 'node:util';
import type { Json } from './json.ts';
import { formsOfAll, secretRedactor } from './without-secrets.ts';

const TEXTS_MAX = 200;
/**
 * Callers use at most this many characters of a text, so the remaining characters are dropped instead of being
 * searched.
 */
const CHARACTERS_MAX = 128 * 1024;
const DEPTH_MAX = 64;
const TOO_DEEP = '…';

export class SecretTexts {
  readonly #texts = new Set<string>();
  #forms: readonly string[] = [];
  #clean: (text: string, isCut?: boolean) => string = text => text;

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  get all(): readonly string[] {
    return [...this.#texts];
  }

  /** Each secret in every encoding in which a page may show it. `clean` replaces the same encodings with stars. */
  get forms(): readonly string[] {
    return this.#forms;
  }

  /** Must be called before the text is used. Throws if the session already has too many secret texts. */
  add(text: string): void {
    if (this.#texts.has(text)) return;
    if (this.#texts.size >= TEXTS_MAX) throw new Error(`a session has more than ${TEXTS_MAX} secret texts`);
    this.#texts.add(text);
    this.#clean = secretRedactor(this.all);
    this.#forms = formsOfAll(this.all);
  }

  /** The text with stars in place of each secret. `isCut`: the text may end inside a secret. */
  clean(text: string, isCut = false): string {
    return this.isEmpty ? text : this.#clean(text.slice(0, CHARACTERS_MAX), isCut || text.length > CHARACTERS_MAX);
  }

  /**
   * Returns a copy in which all strings, including the names of members, are clean. Returns the same object if there
   * are no secrets.
   */
  cleanAll<Value extends object>(value: Value): Value {
    return this.isEmpty ? value : (this.#cleanValue(value as Json, DEPTH_MAX) as Value); // The type stays the same.
  }

  #cleanValue(value: Json, depth: number): Json {
    if (typeof value === 'string') return this.clean(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth === 0) return TOO_DEEP;
    if (Array.isArray(value)) return value.map(item => this.#cleanValue(item, depth - 1));
    const members = Object.entries(value);
    return Object.fromEntries(members.map(([name, member]) => [this.clean(name), this.#cleanValue(member, depth - 1)]));
  }

  toJSON(): string {
    return `${this.#texts.size} secret texts`;
  }

  [inspect.custom](): string {
    return this.toJSON();
  }
}
