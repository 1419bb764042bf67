// Rules for names that users write, and for slugs made from them.
import { randomInt } from 'node:crypto';
import { NAME_CHARACTERS_MAX } from '../../../contract/applications.ts';
import { invalidRequest } from '../faults.ts';

const SLUG_MAX_CHARACTERS = 40;
const SLUG_MIN_CHARACTERS = 3;
const SUFFIX_CHARACTERS = 5;
const SUFFIX_ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';

/** Trims the name and normalizes it to NFC. Throws a fault if the name is too long or not printable. */
export function cleanName(text: string): string {
  const name = text.trim().normalize('NFC');
  const length = [...name].length;
  if (length < 1 || length > NAME_CHARACTERS_MAX)
    throw invalidRequest([{ path: 'name', message: `has ${length} characters; expected 1 to ${NAME_CHARACTERS_MAX}` }]);
  if (/\p{Cc}/u.test(name))
    throw invalidRequest([{ path: 'name', message: 'contains control characters; expected printable text' }]);
  return name;
}

/** Returns a slug made from a name: `Über Shop!` becomes `uber-shop`. */
export function slugOf(name: string): string {
  const baseSlug = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, SLUG_MAX_CHARACTERS)
    .replace(/-+$/, '');
  return baseSlug.length >= SLUG_MIN_CHARACTERS ? baseSlug : withSuffix('app');
}

/** Adds a random suffix to a slug that is already in use. */
export function withSuffix(slug: string): string {
  const baseCharactersMax = SLUG_MAX_CHARACTERS - SUFFIX_CHARACTERS - 1;
  const suffix = Array.from({ length: SUFFIX_CHARACTERS }, () =>
    SUFFIX_ALPHABET.charAt(randomInt(SUFFIX_ALPHABET.length)),
  );
  return `${slug.slice(0, baseCharactersMax).replace(/-+$/, '')}-${suffix.join('')}`;
}
