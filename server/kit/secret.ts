// A secret prints as stars wherever it might be printed by accident: logs, JSON, template strings, inspect.
import { inspect } from 'node:util';

const STARS = '***';

export class Secret<T extends string | Buffer = string> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** The value itself. Reviewers should check every call. */
  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return STARS;
  }

  toJSON(): string {
    return STARS;
  }

  [inspect.custom](): string {
    return STARS;
  }
}
