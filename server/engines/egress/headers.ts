// Removes the headers that apply to one connection only. Works on raw header lists, so names keep their case and order.
// Pure.

export type RawHeaders = readonly string[];

const HOP_BY_HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Kept even if Connection names them, because removing them would change the meaning of the message. */
const NEVER_REMOVED_HEADERS = new Set([
  'authorization',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'set-cookie',
]);

/** Returns the end-to-end headers. Runs for every plain request and response, so it avoids allocations. */
export function endToEndHeadersOf(raw: RawHeaders, omittedName?: string): string[] {
  const connectionNames = connectionNamesIn(raw);
  const keptHeaders: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const lowerName = name.toLowerCase();
    if (lowerName !== omittedName && !isDropped(lowerName, connectionNames))
      keptHeaders.push(name, raw[index + 1] ?? '');
  }
  return keptHeaders;
}

const isDropped = (name: string, connectionNames: ReadonlySet<string>): boolean =>
  HOP_BY_HOP_HEADERS.has(name) || (connectionNames.has(name) && !NEVER_REMOVED_HEADERS.has(name));

const NO_NAMES: ReadonlySet<string> = new Set();

function connectionNamesIn(raw: RawHeaders): ReadonlySet<string> {
  const lists = valuesOf(raw, 'connection');
  if (lists.length === 0) return NO_NAMES;
  return new Set(lists.flatMap(list => list.split(',')).map(token => token.trim().toLowerCase()));
}

export type Framing = 'none' | 'length' | 'chunked' | 'unknown';

/**
 * How the body of a request is delimited. `unknown` means that the length is ambiguous, which could be used for request
 * smuggling. Such a request is not forwarded.
 */
export function framingOf(raw: RawHeaders): Framing {
  const lengths = valuesOf(raw, 'content-length');
  const codings = valuesOf(raw, 'transfer-encoding');
  if (codings.length > 0)
    return codings.join(',').toLowerCase() === 'chunked' && lengths.length === 0 ? 'chunked' : 'unknown';
  if (lengths.length > 1) return 'unknown';
  return lengths.length === 1 && lengths[0] !== '0' ? 'length' : 'none';
}

function valuesOf(raw: RawHeaders, lowerName: string): readonly string[] {
  const matchingValues: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    // Comparing the length first is faster.
    if (name.length === lowerName.length && name.toLowerCase() === lowerName)
      matchingValues.push((raw[index + 1] ?? '').trim());
  }
  return matchingValues;
}

/** For any other method, Node sends a chunked body if there is no Content-Length. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

/** Returns the headers of a request as they are sent to the origin server. */
export function requestHeaders(method: string, host: string, raw: RawHeaders): string[] {
  const endToEndHeaders = endToEndHeadersOf(raw, 'host');
  const bodyFraming = framingOf(raw);
  const chunkedHeader = bodyFraming === 'chunked' ? ['Transfer-Encoding', 'chunked'] : [];
  const needsLength =
    bodyFraming === 'none' && !METHODS_WITHOUT_BODY.has(method) && valuesOf(raw, 'content-length').length === 0;
  // A browser without a proxy sends `Connection: keep-alive` at this position.
  return [
    'Host',
    host,
    'Connection',
    'keep-alive',
    ...endToEndHeaders,
    ...chunkedHeader,
    ...(needsLength ? ['Content-Length', '0'] : []),
  ];
}
