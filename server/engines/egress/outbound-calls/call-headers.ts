// The headers of a call. Checks the headers from the caller, and sets the headers that describe the connection.
import { CallError } from './call-failure.ts';
import type { CallTarget } from './call-target.ts';
import type { CallLimits } from './limits.ts';

/** Header names are case-insensitive, and each may occur at most once. */
export type CallHeaders = Readonly<Record<string, string>>;

const NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, spaces and tabs. A line break would begin another header. */
const VALUE_PATTERN = /^[\t\u0020-\u007e]*$/;

/** Headers that a caller may not set, because they are set here or describe the connection. Cookies are never sent. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'cookie',
  'cookie2',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

/**
 * Returns all headers of the request as the flat list of names and values that Node accepts.
 * @throws CallError
 */
export function headersOf(
  callerHeaders: CallHeaders,
  target: CallTarget,
  bodyBytes: number | undefined,
  { requestHeadersMax, requestHeadBytesMax }: CallLimits,
): string[] {
  const entries = Object.entries(callerHeaders);
  if (entries.length > requestHeadersMax) throw new CallError('too_many_headers');
  const names = new Set<string>();
  let totalBytes = 0;
  for (const [name, value] of entries) {
    const lowerName = name.toLowerCase();
    if (!NAME_PATTERN.test(name) || !VALUE_PATTERN.test(value)) throw new CallError('invalid_header');
    if (RESERVED_HEADERS.has(lowerName)) throw new CallError('reserved_header');
    if (names.has(lowerName)) throw new CallError('repeated_header');
    names.add(lowerName);
    totalBytes += name.length + value.length;
  }
  if (totalBytes > requestHeadBytesMax) throw new CallError('too_many_headers');
  const lengthHeader = bodyBytes === undefined ? [] : ['content-length', `${bodyBytes}`];
  return [
    'host',
    target.host,
    'accept-encoding',
    'identity',
    'connection',
    'close',
    ...lengthHeader,
    ...entries.flat(),
  ];
}
