// Values that somebody else chose. Text is bounded and well-formed before anything looks at it; JSON that is none is
// undefined, not an error.

/** At most so many characters, without lone surrogates, which encodeURIComponent and others throw on. */
export const boundedText = (text: string, charsMax: number): string =>
  (text.length <= charsMax ? text : text.slice(0, charsMax)).toWellFormed();

/** The value, of which nothing is known; undefined where it is not JSON. */
export function parseJson(text: string | Buffer): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The address of a request, as its first line says it. One that is none is that of a path that nothing is at. */
export function requestUrl(target = '/'): URL {
  const url = target.startsWith('/') ? URL.parse(`http://localhost${target}`) : URL.parse(target, 'http://localhost');
  return url ?? new URL('http://localhost//');
}
