// Who sent a request that another host of the fleet has passed on. Only entry/forward records this, after it has
// checked the token of that host.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface ForwardedFrom {
  /** The host that passed the request on. */
  readonly host: string;
  /** The client as that host saw it: its IP address, and the address and port at its end of the connection. */
  readonly ip: string;
  readonly address: string;
  readonly port?: number;
}

const forwardedRequests = new WeakMap<IncomingHttpHeaders, ForwardedFrom>();

export const noteForwarded = ({ headers }: Pick<IncomingMessage, 'headers'>, from: ForwardedFrom): void =>
  void forwardedRequests.set(headers, from);

export const forwardedFrom = ({ headers }: Pick<IncomingMessage, 'headers'>): ForwardedFrom | undefined =>
  forwardedRequests.get(headers);
