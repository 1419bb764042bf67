// Combines the events of each request into one network call.
import type { JsonObject } from '../../../contract/common.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { asNumber, asObject, asText } from './reading.ts';

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
  const hopCounts = new Map<string, number>();
  for (const { method, pageId, timestamp = 0, request } of logs) {
    const params = request?.params ?? {};
    const id = `${pageId} ${asText(params.requestId)}`;
    const key = (): string => `${id} ${hopCounts.get(id) ?? 0}`;
    if (method === 'Network.requestWillBeSent') {
      const previousHop = calls.get(key());
      if (previousHop && params.redirectResponse) {
        calls.set(key(), { ...previousHop, ...responseFields(asObject(params.redirectResponse)), endMs: timestamp });
        hopCounts.set(id, (hopCounts.get(id) ?? 0) + 1);
      }
      const sentRequest = asObject(params.request);
      calls.set(key(), {
        key: key(),
        pageId,
        method: asText(sentRequest.method) || 'GET',
        url: asText(sentRequest.url),
        type: asText(params.type) || 'Other',
        startMs: timestamp,
        requestHeaders: asObject(sentRequest.headers),
        responseHeaders: {},
      });
      continue;
    }
    const call = calls.get(key());
    if (!call) continue;
    if (method === 'Network.responseReceived')
      calls.set(key(), { ...call, ...responseFields(asObject(params.response)) });
    if (method === 'Network.loadingFinished')
      calls.set(key(), { ...call, endMs: timestamp, bytes: asNumber(params.encodedDataLength) ?? call.bytes ?? 0 });
    if (method === 'Network.loadingFailed')
      calls.set(key(), { ...call, endMs: timestamp, failureText: asText(params.errorText) || 'failed' });
  }
  return [...calls.values()];
}

function responseFields(response: JsonObject): Partial<NetworkCall> {
  const status = asNumber(response.status);
  const address = asText(response.remoteIPAddress);
  return {
    ...(status === undefined ? {} : { status }),
    mimeType: asText(response.mimeType),
    protocol: asText(response.protocol),
    responseHeaders: asObject(response.headers),
    ...(address ? { remoteAddress: `${address}:${asNumber(response.remotePort) ?? ''}` } : {}),
  };
}

/** Returns the last part of the path, or the host if there is none. */
export function shortUrl(url: string): string {
  if (!URL.canParse(url)) return url;
  const { hostname, pathname, protocol } = new URL(url);
  if (protocol === 'data:') return 'data:…';
  return pathname.split('/').filter(Boolean).at(-1) ?? hostname;
}
