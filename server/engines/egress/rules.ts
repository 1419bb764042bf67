// Decides which addresses a session may reach. An address that is not on the public internet is refused by a named
// rule, unless the operator allows it. For an IPv6 address with an embedded IPv4 address, both are checked. Pure.
import {
  type Address,
  type AddressRange,
  covers,
  ipv4Address,
  matchesExactly,
  parseRange,
  type Range,
  toRange,
} from './address.ts';
import { isLoopback, isUnspecified, type ThisMachine } from './this-machine.ts';

export type AddressRule =
  | 'own_service'
  | 'own_address'
  | 'metadata'
  | 'loopback'
  | 'unspecified'
  | 'private'
  | 'shared'
  | 'link_local'
  | 'site_local'
  | 'unique_local'
  | 'multicast'
  | 'broadcast'
  | 'documentation'
  | 'benchmarking'
  | 'protocol'
  | 'relay'
  | 'transition'
  | 'reserved';

export type Verdict = { readonly isAllowed: true } | { readonly isAllowed: false; readonly rule: AddressRule };

/** The first match decides, so narrower ranges come first. */
const REFUSED_RANGES: ReadonlyArray<readonly [AddressRule, readonly string[]]> = [
  // Metadata services: the common address, container tasks, Alibaba, Azure's wire server (a public address), Oracle,
  // AWS and Google over IPv6.
  ['metadata', ['169.254.169.254/32', '169.254.170.2/32', '169.254.170.23/32', '100.100.100.200/32']],
  ['metadata', ['168.63.129.16/32', '192.0.0.192/32', 'fd00:ec2::/32', 'fd20:ce::254/128']],
  ['unspecified', ['0.0.0.0/32', '::/128']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']],
  ['shared', ['100.64.0.0/10']],
  ['link_local', ['169.254.0.0/16', 'fe80::/10']],
  ['site_local', ['fec0::/10']],
  ['unique_local', ['fc00::/7']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  ['broadcast', ['255.255.255.255/32']],
  ['documentation', ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32', '3fff::/20']],
  ['benchmarking', ['198.18.0.0/15', '2001:2::/48']],
  ['relay', ['192.88.99.0/24']],
  // Teredo, IPv4-compatible, IPv4-translated and local NAT64: gateways into an IPv4 network.
  ['transition', ['2001::/32', '::/96', '::ffff:0:0:0/96', '64:ff9b:1::/48']],
  ['protocol', ['192.0.0.0/24', '2001::/23']],
  ['reserved', ['0.0.0.0/8', '240.0.0.0/4']],
];

const PARSED_REFUSED_RANGES: ReadonlyArray<readonly [AddressRule, Range]> = REFUSED_RANGES.flatMap(([rule, texts]) =>
  texts.map((text): readonly [AddressRule, Range] => [rule, parseRange(text)]),
);

/** The only allocated IPv6 space, and the NAT64 prefix by which IPv6-only networks reach IPv4. */
const GLOBAL_IPV6_RANGES: readonly Range[] = [parseRange('2000::/3'), parseRange('64:ff9b::/96')];

interface Embedding {
  readonly prefixRange: Range;
  /** Positions of the four bytes of the IPv4 address among the 16 bytes of the IPv6 address. */
  readonly positions: readonly [number, number, number, number];
  /** Whether the IPv4 bytes are stored inverted, as in Teredo. */
  readonly isInverted?: boolean;
  /**
   * Whether the IPv4 address may instead be at other positions. The embedding is ignored if its first IPv4 byte is
   * zero.
   */
  readonly isOptional?: boolean;
}

const LAST_FOUR_POSITIONS = [12, 13, 14, 15] as const;

const EMBEDDINGS: readonly Embedding[] = [
  { prefixRange: parseRange('64:ff9b::/96'), positions: LAST_FOUR_POSITIONS },
  { prefixRange: parseRange('64:ff9b:1::/48'), positions: LAST_FOUR_POSITIONS, isOptional: true },
  // RFC 6052: with a /48 or /56 prefix, the IPv4 address surrounds bits 64 to 71; with a /64 prefix, it follows them.
  { prefixRange: parseRange('64:ff9b:1::/48'), positions: [6, 7, 9, 10], isOptional: true },
  { prefixRange: parseRange('64:ff9b:1::/48'), positions: [7, 9, 10, 11], isOptional: true },
  { prefixRange: parseRange('64:ff9b:1::/48'), positions: [9, 10, 11, 12], isOptional: true },
  { prefixRange: parseRange('::ffff:0:0:0/96'), positions: LAST_FOUR_POSITIONS },
  { prefixRange: parseRange('::/96'), positions: LAST_FOUR_POSITIONS },
  { prefixRange: parseRange('2002::/16'), positions: [2, 3, 4, 5] },
  { prefixRange: parseRange('2001::/32'), positions: [4, 5, 6, 7] },
  { prefixRange: parseRange('2001::/32'), positions: LAST_FOUR_POSITIONS, isInverted: true },
];

/** The beginning of the interface id in an ISATAP address, which may have any prefix. */
const ISATAP_MARKS = [Uint8Array.of(0x00, 0x00, 0x5e, 0xfe), Uint8Array.of(0x02, 0x00, 0x5e, 0xfe)] as const;

export interface AddressRules {
  /** Checks an address. `local`: the local address of an open connection to the address, if there is one. */
  check(address: Address, port: number, local?: string): Verdict;
  /** Whether an entry in the operator's list covers this address and port. */
  isAllowedByOperator(address: Address, port: number): boolean;
}

/**
 * A listener of this server is refused even inside an allowed range: only an entry for exactly that address and port
 * allows it. Other ports of this machine are allowed by an entry for exactly that address, or by an entry within
 * loopback.
 */
export function addressRules(allow: readonly AddressRange[], machine: ThisMachine): AddressRules {
  const allowedRanges = allow.map(toRange);
  return {
    isAllowedByOperator: (address, port) => allowedRanges.some(entry => covers(entry, address, port)),
    check: (address, port, local) => {
      const candidates = [...embeddedAddresses(address), address];
      const isAllowed = (candidate: Address, matches: typeof covers): boolean =>
        allowedRanges.some(entry => matches(entry, candidate, port));
      if (
        candidates.some(
          candidate => machine.listens(candidate, port) && !isAllowed(connectedAddress(candidate), matchesExactly),
        )
      )
        return { isAllowed: false, rule: 'own_service' };
      for (const candidate of candidates) {
        const rule = ruleOf(candidate);
        // The outer and the embedded address must both be allowed: an entry for the IPv6 prefix does not allow the
        // embedded address.
        if (rule && !isAllowed(candidate, covers)) return { isAllowed: false, rule };
      }
      if (
        candidates.some(
          candidate =>
            machine.has(candidate, port, local) && !isAllowed(connectedAddress(candidate), matchesThisMachine),
        )
      )
        return { isAllowed: false, rule: 'own_address' };
      return { isAllowed: true };
    },
  };
}

/** Returns the rule that refuses an address, or undefined for a public address. Ignores embedded addresses. */
export function ruleOf(address: Address): AddressRule | undefined {
  const refusedRange = PARSED_REFUSED_RANGES.find(([, refused]) => covers(refused, address, 0));
  if (refusedRange) return refusedRange[0];
  if (address.family === 6 && !GLOBAL_IPV6_RANGES.some(open => covers(open, address, 0))) return 'reserved';
  return undefined;
}

/** Returns the IPv4 addresses that are embedded in an IPv6 address. `::` and `::1` have none. */
function embeddedAddresses(address: Address): readonly Address[] {
  if (address.family === 4 || isZeroOrOne(address.bytes)) return [];
  const ipv4Addresses = EMBEDDINGS.filter(embedding => covers(embedding.prefixRange, address, 0)).flatMap(embedding => {
    const embeddedAddress = extractIpv4(address.bytes, embedding.positions, embedding.isInverted);
    return embedding.isOptional && embeddedAddress.bytes[0] === 0 ? [] : [embeddedAddress];
  });
  const isIsatap = ISATAP_MARKS.some(mark => mark.every((byte, index) => address.bytes[8 + index] === byte));
  return isIsatap ? [...ipv4Addresses, extractIpv4(address.bytes, LAST_FOUR_POSITIONS)] : ipv4Addresses;
}

const isZeroOrOne = (bytes: Uint8Array): boolean =>
  (bytes[15] ?? 0) <= 1 && bytes.subarray(0, 15).every(byte => byte === 0);

function extractIpv4(bytes: Uint8Array, at: readonly number[], isInverted = false): Address {
  const xorMask = isInverted ? 0xff : 0;
  return ipv4Address(Uint8Array.from(at, index => (bytes[index] ?? 0) ^ xorMask));
}

const LOOPBACK_PREFIX_BITS = 8;
const IPV4_LOOPBACK = ipv4Address(Uint8Array.of(127, 0, 0, 1));
const IPV6_LOOPBACK: Address = { family: 6, bytes: Uint8Array.of(...new Array<number>(15).fill(0), 1), text: '::1' };

/** Returns the address to which Linux connects: loopback for the unspecified address. */
function connectedAddress(address: Address): Address {
  if (!isUnspecified(address)) return address;
  return address.family === 4 ? IPV4_LOOPBACK : IPV6_LOOPBACK;
}

/**
 * Whether the range covers this address and only addresses of this machine: it is a single address, or a range within
 * 127.0.0.0/8.
 */
const matchesThisMachine = (entryRange: Range, address: Address, port: number): boolean =>
  (entryRange.prefixBits === address.bytes.length * 8 ||
    (address.family === 4 && isLoopback(address) && entryRange.prefixBits >= LOOPBACK_PREFIX_BITS)) &&
  covers(entryRange, address, port);
