// One term of a metadata filter as a condition of SQL: containment, which only a string leaf at that path satisfies.
import { type RawBuilder, sql } from 'kysely';
import type { MetadataTerm } from '../rows/sessions.ts';

/** `['a','b']: 'value'` becomes `user_metadata @> '{"a":{"b":"value"}}'`, sent as a parameter, never as SQL. */
export function metadataTerm(term: MetadataTerm): RawBuilder<boolean> {
  if (![...term.path, term.value].every(isStorable)) return sql<boolean>`false`;
  return sql<boolean>`user_metadata @> ${JSON.stringify(nested(term))}::jsonb`;
}

/** jsonb can contain neither of these, so no row matches, and a query would fail. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** A computed key is always an own property, so that `__proto__` is a name like any other. */
const nested = (term: MetadataTerm): unknown =>
  term.path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), term.value);
