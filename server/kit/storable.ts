// Text that PostgreSQL can store: without NUL, and without unpaired surrogates, which its JSON types reject.

export const toStorable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed();

/** Returns a copy in which PostgreSQL can store every string. Bytes are not copied. */
export function storableCopy<T>(value: T): T;
export function storableCopy(value: unknown): unknown {
  if (typeof value === 'string') return toStorable(value);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map(member => storableCopy(member));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [toStorable(name), storableCopy(member)]));
}
