// Parses the filters of the session list: the metadata query and the list of statuses. Pure.
import { END_REASONS, type EndReason, SESSION_STATUSES, type SessionStatus } from '../../../contract/sessions.ts';
import type { MetadataTerm } from '../../engines/store/rows/sessions.ts';
import { fault, invalidRequest } from '../faults.ts';

const NAMESPACE = 'user_metadata';
const AND = ' AND ';
const TERMS_MAX = 20;
const EXAMPLE = `${NAMESPACE}['key']:'value'`;

const WORDS_MAX = 10;

export interface SessionSearch {
  readonly metadata?: readonly MetadataTerm[];
  readonly words?: readonly string[];
}

/** Matches `user_metadata[` and likely misspellings of it, such as `metadata[`. */
const TERM_START_PATTERN = /^\s*(user_metadata|\w+\[)/;

/** Parses metadata terms or words. A query that begins like a term is parsed as terms. */
export function parseSessionQuery(text: string): SessionSearch {
  if (TERM_START_PATTERN.test(text)) return { metadata: parseMetadataQuery(text) };
  const words = [...new Set(text.trim().split(/\s+/))].filter(word => word !== '');
  if (words.length === 0)
    throw fault('invalid_query', 'q is blank.', { advice: `Omit it, or send words, or a term such as ${EXAMPLE}.` });
  if (words.length > WORDS_MAX)
    throw fault('invalid_query', `q has ${words.length} words; a search can have at most ${WORDS_MAX} words.`, {
      advice: 'Send fewer words.',
    });
  return { words };
}

/**
 * Parses terms such as `user_metadata['a']['b']:'c' AND user_metadata['d']:'e'`. Inside quotes, `\'` and `\\` stand for
 * `'` and `\`.
 */
export function parseMetadataQuery(text: string): MetadataTerm[] {
  const reader = new Reader(text);
  const terms = [reader.term()];
  while (!reader.isAtEnd) {
    reader.expect(AND, `the end, or ${AND.trim()} and another term`);
    if (terms.length === TERMS_MAX) reader.fail(`at most ${TERMS_MAX} terms`);
    terms.push(reader.term());
  }
  return terms;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  term(): MetadataTerm {
    this.expect(NAMESPACE, EXAMPLE);
    const path = [this.#key()];
    while (this.#isAt('[')) path.push(this.#key());
    this.expect(':', "a colon and a quoted value, or another key in ['…']");
    return { path, value: this.#readQuoted() };
  }

  expect(word: string, expected: string): void {
    if (!this.#isAt(word)) this.fail(expected);
    this.#at += word.length;
  }

  fail(expected: string): never {
    const foundText = this.isAtEnd
      ? 'the text ends here'
      : `found ${JSON.stringify(this.#text.slice(this.#at, this.#at + 12))}`;
    throw fault('invalid_query', `q could not be parsed at position ${this.#at}: ${foundText}; expected ${expected}.`, {
      advice: `Write q as ${EXAMPLE}, and join several terms with "${AND}".`,
      details: { position: this.#at },
    });
  }

  #key(): string {
    this.expect('[', "a key in ['…']");
    const key = this.#readQuoted();
    this.expect(']', 'a closing bracket');
    return key;
  }

  #readQuoted(): string {
    this.expect("'", 'a single quote');
    let quotedText = '';
    while (!this.#isAt("'")) {
      if (this.isAtEnd) this.fail('a closing single quote');
      if (this.#isAt('\\')) this.#escape();
      quotedText += this.#text.charAt(this.#at);
      this.#at += 1;
    }
    this.#at += 1;
    return quotedText;
  }

  /** Skips a backslash. The character after it must be a quote or a backslash, and is taken literally. */
  #escape(): void {
    this.#at += 1;
    if (!this.#isAt("'") && !this.#isAt('\\')) this.fail("' or \\ after a backslash");
  }

  #isAt(word: string): boolean {
    return this.#text.startsWith(word, this.#at);
  }
}

/** Parses a list such as `RUNNING` or `RUNNING,PENDING`. */
export function parseStatuses(text: string): SessionStatus[] {
  const words = text.split(',').map(word => word.trim());
  return [...new Set(words.map(requireStatus))];
}

/** Parses a list such as `crashed` or `crashed,out_of_memory`. */
export function parseEndReasons(text: string): EndReason[] {
  return text.split(',').map(word => {
    const reason = END_REASONS.find(known => known === word.trim());
    if (reason) return reason;
    const message = `is ${JSON.stringify(word)}; expected one or more of ${END_REASONS.join(', ')}`;
    throw invalidRequest([{ path: 'endReason', message }]);
  });
}

function requireStatus(word: string): SessionStatus {
  const status = SESSION_STATUSES.find(known => known === word);
  if (!status)
    throw invalidRequest([
      { path: 'status', message: `is ${JSON.stringify(word)}; expected one or more of ${SESSION_STATUSES.join(', ')}` },
    ]);
  return status;
}
