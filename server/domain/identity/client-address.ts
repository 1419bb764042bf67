// Where a request comes from. Proxies that are trusted say for whom they ask, in X-Forwarded-For; what anybody else writes
// there counts for nothing.
import { isIP } from 'node:net';
import { allows } from './cidr.ts';

export interface Connection {
  /** Of the socket. */
  readonly remoteAddress: string | undefined;
  /** The header as it came. */
  readonly forwardedFor: string | readonly string[] | undefined;
}

/** Reads the header from the right, hop by hop, up to the first that is no trusted proxy. */
export function clientAddress(
  { remoteAddress = '', forwardedFor = '' }: Connection,
  trusted: readonly string[],
): string {
  let client = plain(remoteAddress);
  if (trusted.length === 0) return client;
  const hops = [forwardedFor].flat().join(',').split(',');
  for (const hop of hops.reverse()) {
    if (!allows(trusted, client)) return client;
    const address = plain(hop.trim());
    if (isIP(address) === 0) return client;
    client = address;
  }
  return client;
}

/** Some proxies add a port, and IPv4 may be written as IPv6. */
const plain = (text: string): string =>
  text
    .replace(/^\[(.*)\](?::\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/^::ffff:(?=\d+\.)/i, '');
