// Combines the events of each request into one network call.
import type { JsonObject } from '../../../contract/common.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { number, object, text } from './reading.ts';

export interface NetworkCall {
  readonly key: string;
  readonly pageId: number;
  readonly method: string;
  readonly url: string;
  readonly type: string;
  readonly startMs: number;
  readonly endMs?: number;
  readonly status?: number;
  readonly mimeType?: string;
  readonly bytes?: number;
  readonly failureText?: string;
  readonly requestHeaders: JsonObject;
  readonly responseHeaders: JsonObject;
  readonly remoteAddress?: string;
  readonly protocol?: string;
}

export function networkCalls(logs: readonly SessionLog[]): NetworkCall[] {
  const calls = new Map<string, NetworkCall>();
  /** Redirects keep the request id, so each hop gets its own key. */
  const hops = new Map<string, number>();
  for (const { method, pageId, timestamp = 0, request } of logs) {
    const params = request?.params ?? {};
    const id = `${pageId} ${text(params.requestId)}`;
    const key = (): string => `${id} ${hops.get(id) ?? 0}`;
    if (method === 'Network.requestWillBeSent') {
      const previousHop = calls.get(key());
      if (previousHop && params.redirectResponse) {
        calls.set(key(), { ...previousHop, ...responseFields(object(params.redirectResponse)), endMs: timestamp });
        hops.set(id, (hops.get(id) ?? 0) + 1);
      }
      const sentRequest = object(params.request);
      calls.set(key(), {
        key: key(),
        pageId,
        method: text(sentRequest.method) || 'GET',
        url: text(sentRequest.url),
        type: text(params.type) || 'Other',
        startMs: timestamp,
        requestHeaders: object(sentRequest.headers),
        responseHeaders: {},
      });
      continue;
    }
    const call = calls.get(key());
    if (!call) continue;
    if (method === 'Network.responseReceived')
      calls.set(key(), { ...call, ...responseFields(object(params.response)) });
    if (method === 'Network.loadingFinished')
      calls.set(key(), { ...call, endMs: timestamp, bytes: number(params.encodedDataLength) ?? call.bytes ?? 0 });
    if (method === 'Network.loadingFailed')
      calls.set(key(), { ...call, endMs: timestamp, failureText: text(params.errorText) || 'failed' });
  }
  return [...calls.values()];
}

function responseFields(response: JsonObject): Partial<NetworkCall> {
  const status = number(response.status);
  const address = text(response.remoteIPAddress);
  return {
    ...(status === undefined ? {} : { status }),
    mimeType: text(response.mimeType),
    protocol: text(response.protocol),
    responseHeaders: object(response.headers),
    ...(address ? { remoteAddress: `${address}:${number(response.remotePort) ?? ''}` } : {}),
  };
}

/** Returns the last part of the path, or the host if there is none. */
export function shortUrl(url: string): string {
  if (!URL.canParse(url)) return url;
  const { hostname, pathname, protocol } = new URL(url);
  if (protocol === 'data:') return 'data:…';
  return pathname.split('/').filter(Boolean).at(-1) ?? hostname;
}
