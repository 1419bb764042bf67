// Names and values of headers that an operation may send. Pure.

const HEADER_NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/**
 * The characters that a header value may contain: visible ASCII, spaces and tabs. A line break would begin another
 * header.
 */
const HEADER_VALUE_PATTERN = /^[\t\u0020-\u007e]*$/;
const VALUE_CHARACTERS_MAX = 4096;

/** Headers that concern the connection, are set by the service, or carry secrets. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['accept-encoding', 'authorization', 'connection', 'content-length', 'content-type', 'cookie', 'cookie2'],
  ...['expect', 'forwarded', 'host', 'http2-settings', 'keep-alive', 'proxy-authorization', 'proxy-connection'],
  ...['set-cookie', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'via'],
]);

/** Returns a description of the problem. Undefined if an operation may send a header with this name. */
export function headerNameProblem(name: string): string | undefined {
  if (!HEADER_NAME_PATTERN.test(name)) return 'is not a valid header name';
  if (name.toLowerCase() === 'authorization') return 'is set from a credential: use auth';
  return RESERVED_HEADERS.has(name.toLowerCase()) ? 'is reserved, and cannot be set by an operation' : undefined;
}

export function headerValueProblem(value: string): string | undefined {
  if (value.length > VALUE_CHARACTERS_MAX) return `is longer than ${VALUE_CHARACTERS_MAX} characters`;
  return HEADER_VALUE_PATTERN.test(value) ? undefined : 'contains a character that is not allowed in a header';
}
