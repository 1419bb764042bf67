// Reads untrusted values: text is shortened and made well-formed, and invalid JSON gives undefined instead of an error.

/**
 * Returns at most `charsMax` characters. Lone surrogates are replaced, because encodeURIComponent and other functions
 * throw for them.
 */
export const boundedText = (text: string, charsMax: number): string =>
  (text.length <= charsMax ? text : text.slice(0, charsMax)).toWellFormed();

/** The parsed value, not validated; undefined if the text is not JSON. */
export function parseJson(text: string | Buffer): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The URL of a request line's target. For an invalid target, a URL whose path matches no route. */
export function requestUrl(target = '/'): URL {
  const url = target.startsWith('/') ? URL.parse(`http://localhost${target}`) : URL.parse(target, 'http://localhost');
  return url ?? new URL('http://localhost//');
}
