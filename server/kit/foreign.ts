// Reads untrusted values: text is shortened and made well-formed, and invalid JSON gives undefined instead of an error.

/**
 * Returns at most `charsMax` characters. Lone surrogates are replaced, because encodeURIComponent and other functions
 * throw for them.
 */
export const boundedText = (text: string, charsMax: number): string =>
  (text.length <= charsMax ? text : text.slice(0, charsMax)).toWellFormed();

/** Returns the parsed value without validating it, or undefined if the text is not JSON. */
export function parseJson(text: string | Buffer): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the URL for the target in a request line. If the target is invalid, returns a URL whose path matches no
 * route.
 */
export function requestUrl(target = '/'): URL {
  const url = target.startsWith('/') ? URL.parse(`http://localhost${target}`) : URL.parse(target, 'http://localhost');
  return url ?? new URL('http://localhost//');
}
