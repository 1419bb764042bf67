// Records who sent a request that another host of the fleet has forwarded. Only `acceptForwarded` in
// domain/fleet/host-tokens.ts writes this record, after it has checked the token of that host.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface ForwardedFrom {
  /** The host that forwarded the request. */
  readonly host: string;
  /** The IP address of the client, behind trusted proxies, as that host determined it. */
  readonly ip: string;
  /** The address and port of the other end of the connection to that host. */
  readonly address: string;
  readonly port?: number;
}

const forwardedRequests = new WeakMap<IncomingHttpHeaders, ForwardedFrom>();

export const noteForwarded = ({ headers }: Pick<IncomingMessage, 'headers'>, from: ForwardedFrom): void =>
  void forwardedRequests.set(headers, from);

export const forwardedFrom = ({ headers }: Pick<IncomingMessage, 'headers'>): ForwardedFrom | undefined =>
  forwardedRequests.get(headers);
