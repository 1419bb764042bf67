// JSON in the canonical form of RFC 8785, which receipts use for the digests of inputs and outputs.

/** Throws a TypeError for a value that is not I-JSON (RFC 7493). */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('a string contains a lone surrogate');
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number is not finite');
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`)
      .join(',')}}`;
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} is not a JSON value`);
  return text;
}
