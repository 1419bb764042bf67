// JSON in the canonical form of RFC 8785, in which equal values have equal bytes, and digests of this form.
import { createHash } from 'node:crypto';

/**
 * Throws for values that I-JSON (RFC 7493) does not allow: numbers that are not finite, and strings with lone
 * surrogates.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) return canonicalObject(value);
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('a string contains a lone surrogate');
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number is not finite');
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a value of type ${typeof value} is not valid JSON`);
  return text;
}

export const NOT_INTEROPERABLE_TEXT =
  'contains a number beyond 2^53, which many programs round (send it as text), or half of a surrogate pair (remove it)';

/**
 * Whether other programs read the same value from the canonical form: all integers are exact in every language, and all
 * strings are well-formed.
 */
export function isInteroperable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isInteroperable(member));
}

/** Writes the members in the order of the UTF-16 code units of their names. Undefined members are left out. */
function canonicalObject(value: object): string {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`).join(',')}}`;
}

/** Returns the digest of the canonical form: `sha256:` and lower-case hex. */
export const digestOf = (value: unknown): string => sha256(canonicalJson(value));

/** Like `digestOf`, but for a string, which is not canonicalized. */
export const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
