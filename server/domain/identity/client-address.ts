// Determines the address of the client that sent a request. Trusted proxies report it in X-Forwarded-For. If anyone
// else sends this header, it is ignored.
import { isIP } from 'node:net';
import { rangesAllow } from './cidr.ts';

/** The source of a request, as far as the client address is concerned. */
export interface RequestAddresses {
  /** Peer address of the socket. */
  readonly remoteAddress: string | undefined;
  /** The X-Forwarded-For header. */
  readonly forwardedFor: string | readonly string[] | undefined;
}

/**
 * Returns the address of the client. Reads the header from right to left, up to the first hop that is not a trusted
 * proxy.
 */
export function clientAddress(
  { remoteAddress = '', forwardedFor = '' }: RequestAddresses,
  trustedProxies: readonly string[],
): string {
  let currentAddress = normalizeAddress(remoteAddress);
  if (trustedProxies.length === 0) return currentAddress;
  const hops = [forwardedFor].flat().join(',').split(',');
  for (const hop of hops.reverse()) {
    if (!rangesAllow(trustedProxies, currentAddress)) return currentAddress;
    const address = normalizeAddress(hop.trim());
    if (isIP(address) === 0) return currentAddress;
    currentAddress = address;
  }
  return currentAddress;
}

/** Removes the port, which some proxies add, and the IPv6 prefix `::ffff:` of IPv4 addresses. */
const normalizeAddress = (text: string): string =>
  text
    .replace(/^\[(.*)\](?::\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/^::ffff:(?=\d+\.)/i, '');
