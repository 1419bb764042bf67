// Requests that another host of the fleet has passed on: who sent them there. Only entry/forward notes them, after it has checked
// the token of that host.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface ForwardedFrom {
  /** The host that passed it on. */
  readonly host: string;
  /** Of the client, as that host saw it: its address, and the end of its connection. */
  readonly ip: string;
  readonly address: string;
  readonly port?: number;
}

const noted = new WeakMap<IncomingHttpHeaders, ForwardedFrom>();

export const noteForwarded = ({ headers }: Pick<IncomingMessage, 'headers'>, from: ForwardedFrom): void =>
  void noted.set(headers, from);

export const forwardedFrom = ({ headers }: Pick<IncomingMessage, 'headers'>): ForwardedFrom | undefined =>
  noted.get(headers);
