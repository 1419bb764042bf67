// Converts one request into an entry of a HAR file (HAR 1.2, with the extensions of Chrome DevTools).
import { isObject } from '../../kit/json.ts';
import { CUT, REDACTED } from './redact.ts';
import { numberAt, objectAt, textAt, type UntrustedObject } from './values.ts';

/** One request. Each redirect in a chain is a request of its own. */
export interface Hop {
  /** Milliseconds since 1970 by the server's clock; the browser's time is in `sent`. */
  readonly at: number;
  readonly pageRef: string | undefined;
  readonly isSocket: boolean;
  sent: UntrustedObject;
  received: UntrustedObject | undefined;
  hasExtra: boolean;
  sentExtra: UntrustedObject | undefined;
  receivedExtra: UntrustedObject | undefined;
  isFromMemory: boolean;
  finished: UntrustedObject | undefined;
  failed: UntrustedObject | undefined;
}

export type HarEntry = Readonly<Record<string, unknown>>;

interface NameValuePair {
  readonly name: string;
  readonly value: string;
}

const UNKNOWN_MIME = 'x-unknown';
/** The largest time value of a date, positive or negative (ECMA-262). */
const DATE_MS_MAX = 8.64e15;

export function harEntry(hop: Hop): HarEntry {
  const { sent, received, finished, failed } = hop;
  const request = objectAt(sent, 'request');
  const url = harUrl(textAt(request, 'url') ?? textAt(sent, 'url') ?? '');
  const version = httpVersion(textAt(received, 'protocol'), hop.isSocket);
  const timings = timingsOf(hop);
  const address = textAt(received, 'remoteIPAddress')?.replace(/^\[|\]$/g, '');
  const connectionId = numberAt(received, 'connectionId');
  return {
    ...(hop.pageRef === undefined ? {} : { pageref: hop.pageRef }),
    startedDateTime: new Date(startMsOf(hop)).toISOString(),
    time: totalMs(timings),
    request: {
      method: textAt(request, 'method') ?? 'GET',
      url,
      httpVersion: version,
      headers: headersOf(objectAt(hop.sentExtra, 'headers') ?? objectAt(request, 'headers')),
      queryString: queryOf(url),
      cookies: [],
      headersSize: -1,
      bodySize: request?.hasPostData === true ? requestBodySize(hop) : 0,
    },
    response: responseOf(hop, version),
    cache: {},
    timings,
    ...(address ? { serverIPAddress: address } : {}),
    ...(connectionId ? { connection: `${connectionId}` } : {}),
    _resourceType: hop.isSocket ? 'websocket' : resourceType(hop),
    ...(hop.isSocket ? { _webSocketMessages: [] } : {}),
    ...(textAt(request, 'initialPriority') ? { _priority: textAt(request, 'initialPriority') } : {}),
    ...(objectAt(sent, 'initiator') ? { _initiator: objectAt(sent, 'initiator') } : {}),
    ...cacheField(hop),
    ...(finished || failed || received ? {} : { comment: 'No response was received while the log was recorded.' }),
  };
}

export const startMsOf = (hop: Hop): number => {
  const wallMs = 1000 * (numberAt(hop.sent, 'wallTime') ?? Number.NaN);
  return Math.abs(wallMs) <= DATE_MS_MAX ? wallMs : hop.at;
};

function responseOf(hop: Hop, version: string): HarEntry {
  const { received, receivedExtra, finished, failed } = hop;
  const headers = headersOf(objectAt(receivedExtra, 'headers') ?? objectAt(received, 'headers'));
  const isCached = cacheField(hop)._fromCache !== undefined;
  const transferredBytes = isCached
    ? 0
    : (numberAt(finished, 'encodedDataLength') ?? numberAt(received, 'encodedDataLength') ?? 0);
  const bodyBytes = isCached
    ? 0
    : Math.max(0, Math.round(transferredBytes - (numberAt(received, 'encodedDataLength') ?? 0)));
  const size = Math.round(numberAt(finished, 'dataLength') ?? 0);
  const errorText = textAt(failed, 'errorText');
  return {
    status: numberAt(receivedExtra, 'statusCode') ?? numberAt(received, 'status') ?? 0,
    statusText: textAt(received, 'statusText') ?? '',
    httpVersion: version,
    headers,
    cookies: [],
    content: {
      size,
      mimeType: textAt(received, 'mimeType') || UNKNOWN_MIME,
      ...(bodyBytes > 0 && size > 0 ? { compression: size - bodyBytes } : {}),
    },
    redirectURL: headers.find(({ name }) => name.toLowerCase() === 'location')?.value ?? '',
    headersSize: -1,
    bodySize: received ? bodyBytes : -1,
    _transferSize: Math.round(transferredBytes),
    _error: errorText ?? null,
    ...(received?.fromServiceWorker === true ? { _fetchedViaServiceWorker: true } : {}),
  };
}

interface Timings {
  readonly blocked: number;
  readonly dns: number;
  readonly ssl: number;
  readonly connect: number;
  readonly send: number;
  readonly wait: number;
  readonly receive: number;
  readonly _blocked_queueing?: number;
}

/**
 * Returns the timings in milliseconds. As HAR requires, `connect` includes `ssl`, and -1 means that the step did not
 * occur.
 */
function timingsOf(hop: Hop): Timings {
  const sentSeconds = numberAt(hop.sent, 'timestamp');
  const endSeconds = numberAt(hop.finished, 'timestamp') ?? numberAt(hop.failed, 'timestamp');
  const timing = objectAt(hop.received, 'timing');
  const requestSeconds = numberAt(timing, 'requestTime');
  const wholeMs =
    sentSeconds === undefined || endSeconds === undefined ? 0 : roundedMs(1000 * (endSeconds - sentSeconds));
  if (!timing || requestSeconds === undefined || sentSeconds === undefined)
    return { blocked: -1, dns: -1, ssl: -1, connect: -1, send: 0, wait: 0, receive: wholeMs };
  const at = (name: string): number => numberAt(timing, name) ?? -1;
  const queueingMs = roundedMs(1000 * (requestSeconds - sentSeconds));
  const firstStepMs = [at('dnsStart'), at('connectStart'), at('sendStart')].find(value => value >= 0) ?? 0;
  const headersMs = at('receiveHeadersEnd');
  const receive = endSeconds === undefined ? 0 : roundedMs(1000 * (endSeconds - requestSeconds) - headersMs);
  return {
    blocked: roundedMs(queueingMs + firstStepMs),
    dns: stepMs(at('dnsStart'), at('dnsEnd')),
    ssl: stepMs(at('sslStart'), at('sslEnd')),
    connect: stepMs(at('connectStart'), at('connectEnd')),
    send: roundedMs(at('sendEnd') - at('sendStart')),
    wait: roundedMs(headersMs - at('sendEnd')),
    receive,
    _blocked_queueing: queueingMs,
  };
}

const stepMs = (start: number, end: number): number => (start < 0 ? -1 : roundedMs(end - start));

const roundedMs = (value: number): number => Math.round(1000 * Math.max(0, value)) / 1000;

const totalMs = ({ blocked, dns, connect, send, wait, receive }: Timings): number =>
  roundedMs([blocked, dns, connect, send, wait, receive].reduce((sum, part) => sum + Math.max(0, part), 0));

function headersOf(headers: UntrustedObject | undefined): NameValuePair[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) =>
    typeof value === 'string' ? value.split('\n').map(line => ({ name, value: line })) : [],
  );
}

function queryOf(url: string): NameValuePair[] {
  if (!URL.canParse(url)) return [];
  return [...new URL(url).searchParams].map(([name, value]) => ({ name, value }));
}

/**
 * Returns a valid URL, as HAR requires. The redaction marks are escaped. If the host was redacted, the result is
 * `about:redacted`.
 */
function harUrl(rawUrl: string): string {
  const url = withEscapedMarks(rawUrl);
  return URL.canParse(url) ? url : 'about:redacted';
}

const withEscapedMarks = (url: string): string =>
  (url.split('#', 1)[0] ?? '')
    .replaceAll(REDACTED, encodeURIComponent(REDACTED))
    .replaceAll(CUT, encodeURIComponent(CUT));

function requestBodySize(hop: Hop): number {
  const headers = headersOf(objectAt(hop.sentExtra, 'headers'));
  const contentLength = headers.find(({ name }) => name.toLowerCase() === 'content-length')?.value;
  return contentLength !== undefined && /^\d{1,15}$/.test(contentLength) ? Number(contentLength) : -1;
}

function httpVersion(protocol: string | undefined, isSocket: boolean): string {
  if (protocol === undefined) return isSocket ? 'http/1.1' : 'unknown';
  return protocol === 'h2' ? 'http/2.0' : protocol;
}

const resourceType = ({ sent, failed }: Hop): string =>
  (textAt(sent, 'type') ?? textAt(failed, 'type') ?? 'other').toLowerCase();

function cacheField({ isFromMemory, received }: Hop): { _fromCache?: 'memory' | 'disk' } {
  if (isFromMemory) return { _fromCache: 'memory' };
  return isObject(received) && received.fromDiskCache === true ? { _fromCache: 'disk' } : {};
}
