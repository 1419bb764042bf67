// Reads settings from the environment by name. All errors are collected, so that one start reports all of them. The
// names that were read are recorded, so that a misspelled name is reported.
import { nearestWord } from './nearest.ts';

export type Variables = Readonly<Record<string, string | undefined>>;

const PREFIX = 'BERTH_';
/** Variables that users of the API may have set in the same shell. They are not settings of the server. */
const CLIENT_VARIABLES: ReadonlySet<string> = new Set(['BERTH_KEY', 'BERTH_TOKEN', 'BERTH_URL']);

export class BadConfig extends Error {
  /** Each problem is described in one or two sentences. */
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'BadConfig';
  }
}

export const badValue = (name: string, value: string, expected: string): BadConfig =>
  new BadConfig([problemText(name, value, expected)]);

const problemText = (name: string, value: string, expected: string): string =>
  `${name} is ${JSON.stringify(value)}; expected ${expected}.`;

export class Environment {
  readonly #variables: Variables;
  readonly #readNames = new Set<string>();
  readonly #problems: string[] = [];

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  /** The value without surrounding spaces; an empty value counts as absent. */
  text(name: string): string | undefined {
    this.#readNames.add(name);
    return this.#variables[name]?.trim() || undefined;
  }

  /** Values separated by commas. */
  list(name: string): string[] {
    return (this.text(name) ?? '')
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '');
  }

  wholeNumber(name: string, fallback: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    this.recordInvalid(name, text, `a whole number from ${min} to ${max}`);
    return fallback;
  }

  oneOf<const Word extends string>(name: string, fallback: Word, words: readonly Word[]): Word {
    const text = this.text(name) ?? fallback;
    const matchingWord = words.find(word => word === text);
    if (matchingWord === undefined) this.recordInvalid(name, text, `one of ${words.join(', ')}`);
    return matchingWord ?? fallback;
  }

  isOn(name: string, fallback: 'on' | 'off'): boolean {
    return this.oneOf(name, fallback, ['on', 'off']) === 'on';
  }

  /** Records an invalid value. Reading continues, so that all errors are reported. */
  recordInvalid(name: string, value: string, expected: string): void {
    this.#problems.push(problemText(name, value, expected));
  }

  /** @throws BadConfig when a value was refused, or a variable that begins with BERTH_ is not a setting. */
  assertValid(): void {
    const knownNames = [...this.#readNames];
    const unknownNameProblems = Object.keys(this.#variables)
      .filter(name => name.startsWith(PREFIX) && !this.#readNames.has(name) && !CLIENT_VARIABLES.has(name))
      .map(
        name =>
          `${name} is not a setting; did you mean ${nearestWord(name, knownNames)}? Correct the name, or unset the variable.`,
      );
    const problems = [...this.#problems, ...unknownNameProblems];
    if (problems.length > 0) throw new BadConfig(problems);
  }
}
