// Address ranges (CIDR) from which a credential may be used.
import { BlockList, isIP } from 'node:net';

export interface Range {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Parses `203.0.113.0/24`, `2001:db8::/32`, or a single address. Undefined for anything else. */
export function parseRange(text: string): Range | undefined {
  const [, address = '', length] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return undefined;
  const maxPrefix = version === 4 ? 32 : 128;
  const prefix = length === undefined ? maxPrefix : Number(length);
  return prefix > maxPrefix ? undefined : { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** Whether the range lies within one of these ranges. */
export function covers(ranges: readonly string[], text: string): boolean {
  const range = parseRange(text);
  if (!range) return false;
  const blockList = new BlockList();
  for (const subnet of ranges.map(parseRange))
    if (subnet && subnet.family === range.family && subnet.prefix <= range.prefix)
      blockList.addSubnet(subnet.address, subnet.prefix, subnet.family);
  return blockList.check(range.address, range.family);
}

/**
 * Whether two addresses are in the same network, for example the network of a household or company. A network is a /24
 * for IPv4 and a /48 for IPv6.
 */
export function isSameNetwork(firstAddress: string, otherAddress: string): boolean {
  const normalizedIp = firstAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  return (
    isIP(normalizedIp) !== 0 && rangesAllow([`${normalizedIp}/${isIP(normalizedIp) === 4 ? 24 : 48}`], otherAddress)
  );
}

/** Whether the address is in one of the ranges. An empty list allows every address. */
export function rangesAllow(ranges: readonly string[], ip: string): boolean {
  if (ranges.length === 0) return true;
  const blockList = new BlockList();
  for (const range of ranges.map(parseRange)) if (range) blockList.addSubnet(range.address, range.prefix, range.family);
  const normalizedIp = ip.replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(normalizedIp) !== 0 && blockList.check(normalizedIp, isIP(normalizedIp) === 4 ? 'ipv4' : 'ipv6');
}
