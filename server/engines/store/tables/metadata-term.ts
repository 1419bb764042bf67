// SQL conditions that filter the list of sessions: by a metadata term, which matches only a string at its path, and by
// a word.
import { type RawBuilder, sql } from 'kysely';
import type { MetadataTerm } from '../rows/sessions.ts';

/** `['a','b']: 'value'` becomes `user_metadata @> '{"a":{"b":"value"}}'`, sent as a parameter, never as SQL. */
export function hasMetadataTerm(term: MetadataTerm): RawBuilder<boolean> {
  if (![...term.path, term.value].every(isStorable)) return sql<boolean>`false`;
  return sql<boolean>`user_metadata @> ${JSON.stringify(nestedObject(term))}::jsonb`;
}

/**
 * Matches the word in the id, in a name or a value of the metadata, in the last page, or at the beginning of the end
 * reason.
 */
export function hasWord(word: string): RawBuilder<boolean> {
  if (!isStorable(word)) return sql<boolean>`false`;
  const escapePattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&');
  // Metadata is searched as JSON text, in which quotes and backslashes are escaped.
  const jsonPattern = `%${escapePattern(JSON.stringify(word).slice(1, -1))}%`;
  const textPattern = `%${escapePattern(word)}%`;
  return sql<boolean>`(id::text like ${`%${escapePattern(word.toLowerCase())}%`} or user_metadata::text ilike ${jsonPattern}
    or page_title ilike ${textPattern} or page_url ilike ${textPattern} or end_reason ilike ${`${escapePattern(word.replaceAll(' ', '_'))}%`})`;
}

/** jsonb can contain neither lone surrogates nor NUL, so no row could match, and the query would fail. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** A computed key always creates an own property, so `__proto__` is a name like any other. */
const nestedObject = (term: MetadataTerm): unknown =>
  term.path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), term.value);
