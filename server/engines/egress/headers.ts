// Which headers of a message belong to one connection only and are not passed on (pure). Raw lists in, raw lists out:
// names keep their case and order, and nothing is added.

export type RawHeaders = readonly string[];

const HOP_BY_HOP = new Set([
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

/** Naming one of these in Connection must not make it vanish: the message would mean something else. */
const NEVER_NAMED = new Set(['authorization', 'content-length', 'content-type', 'cookie', 'host', 'set-cookie']);

/** For a page each of its requests comes by here: names are read once, and nothing is made that is not handed on. */
export function endToEnd(raw: RawHeaders, alsoWithout?: string): string[] {
  const named = namedInConnection(raw);
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const lower = name.toLowerCase();
    if (lower !== alsoWithout && !isDropped(lower, named)) kept.push(name, raw[index + 1] ?? '');
  }
  return kept;
}

const isDropped = (name: string, named: ReadonlySet<string>): boolean =>
  HOP_BY_HOP.has(name) || (named.has(name) && !NEVER_NAMED.has(name));

const NONE: ReadonlySet<string> = new Set();

function namedInConnection(raw: RawHeaders): ReadonlySet<string> {
  const lists = values(raw, 'connection');
  if (lists.length === 0) return NONE;
  return new Set(lists.flatMap(list => list.split(',')).map(token => token.trim().toLowerCase()));
}

export type Framing = 'none' | 'length' | 'chunked' | 'unknown';

/** How the body of a request is delimited. `unknown` is not passed on: two readers could disagree on its end. */
export function framing(raw: RawHeaders): Framing {
  const lengths = values(raw, 'content-length');
  const codings = values(raw, 'transfer-encoding');
  if (codings.length > 0)
    return codings.join(',').toLowerCase() === 'chunked' && lengths.length === 0 ? 'chunked' : 'unknown';
  if (lengths.length > 1) return 'unknown';
  return lengths.length === 1 && lengths[0] !== '0' ? 'length' : 'none';
}

function values(raw: RawHeaders, wanted: string): readonly string[] {
  const found: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    // The length tells most of them apart.
    if (name.length === wanted.length && name.toLowerCase() === wanted) found.push((raw[index + 1] ?? '').trim());
  }
  return found;
}

/** Of all others Node expects a body, and would announce one in chunks if no length were said. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

/** The header list of a request as its server shall get it. */
export function requestHeaders(method: string, host: string, raw: RawHeaders): string[] {
  const rest = endToEnd(raw, 'host');
  const body = framing(raw);
  const chunked = body === 'chunked' ? ['Transfer-Encoding', 'chunked'] : [];
  const unsaid = body === 'none' && !METHODS_WITHOUT_BODY.has(method) && values(raw, 'content-length').length === 0;
  // `Connection: keep-alive` is what a browser without a proxy sends there.
  return ['Host', host, 'Connection', 'keep-alive', ...rest, ...chunked, ...(unsaid ? ['Content-Length', '0'] : [])];
}
