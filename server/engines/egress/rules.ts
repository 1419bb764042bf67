// Which addresses a session may reach (pure). Everything that is not plainly the public internet is refused under the
// name of a rule, unless the operator opened it; an address that carries another one is judged for both.
import {
  type Address,
  type AddressRange,
  address4,
  covers,
  namesExactly,
  type Range,
  range,
  rangeOf,
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

export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly rule: AddressRule };

/** First match wins, so what is narrower stands first. */
const REFUSED: ReadonlyArray<readonly [AddressRule, readonly string[]]> = [
  // Clouds' metadata: the common one, container tasks, Alibaba, Azure's wire server (a public address), Oracle, AWS and Google over IPv6.
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
  // Teredo, IPv4-compatible, IPv4-translated and local NAT64: each leads into somebody's IPv4 network.
  ['transition', ['2001::/32', '::/96', '::ffff:0:0:0/96', '64:ff9b:1::/48']],
  ['protocol', ['192.0.0.0/24', '2001::/23']],
  ['reserved', ['0.0.0.0/8', '240.0.0.0/4']],
];

const TABLE: ReadonlyArray<readonly [AddressRule, Range]> = REFUSED.flatMap(([rule, texts]) =>
  texts.map((text): readonly [AddressRule, Range] => [rule, rangeOf(text)]),
);

/** The only IPv6 space that is handed out, and the one prefix outside it by which IPv6-only networks reach IPv4. */
const GLOBAL_6: readonly Range[] = [rangeOf('2000::/3'), rangeOf('64:ff9b::/96')];

interface Carrier {
  readonly of: Range;
  /** Where the IPv4 bytes stand in the 16. */
  readonly at: readonly [number, number, number, number];
  /** Teredo writes them inverted. */
  readonly inverted?: boolean;
  /** One of several places where they may stand; zeros there mean that they stand elsewhere. */
  readonly perhaps?: boolean;
}

const LAST_FOUR = [12, 13, 14, 15] as const;

const CARRIERS: readonly Carrier[] = [
  { of: rangeOf('64:ff9b::/96'), at: LAST_FOUR },
  { of: rangeOf('64:ff9b:1::/48'), at: LAST_FOUR, perhaps: true },
  // RFC 6052 puts the IPv4 address of a /48 around the octet 64 to 71, that of a /64 behind it.
  { of: rangeOf('64:ff9b:1::/48'), at: [6, 7, 9, 10], perhaps: true },
  { of: rangeOf('64:ff9b:1::/48'), at: [9, 10, 11, 12], perhaps: true },
  { of: rangeOf('::ffff:0:0:0/96'), at: LAST_FOUR },
  { of: rangeOf('::/96'), at: LAST_FOUR },
  { of: rangeOf('2002::/16'), at: [2, 3, 4, 5] },
  { of: rangeOf('2001::/32'), at: [4, 5, 6, 7] },
  { of: rangeOf('2001::/32'), at: LAST_FOUR, inverted: true },
];

/** What follows the network part of an ISATAP address, under any prefix. */
const ISATAP = [Uint8Array.of(0x00, 0x00, 0x5e, 0xfe), Uint8Array.of(0x02, 0x00, 0x5e, 0xfe)] as const;

export interface AddressRules {
  /** `local`: the near end of a connection to it, where there is one. */
  judge(address: Address, port: number, local?: string): Verdict;
}

/**
 * A listener of ours is refused even inside an opened range: only an entry for that very address and port opens it. Every
 * other port of this machine is opened by an entry for that very address, or by one inside loopback.
 */
export function addressRules(allow: readonly AddressRange[], machine: ThisMachine): AddressRules {
  const openings = allow.map(range);
  return {
    judge: (address, port, local) => {
      const layers = [...carried(address), address];
      const isOpen = (layer: Address, how: typeof covers): boolean =>
        openings.some(opening => how(opening, layer, port));
      if (layers.some(layer => machine.listens(layer, port) && !isOpen(real(layer), namesExactly)))
        return { allowed: false, rule: 'own_service' };
      for (const layer of layers) {
        const rule = ruleOf(layer);
        // Every refusal needs its own opening: opening a carrier's prefix does not open what is carried.
        if (rule && !isOpen(layer, covers)) return { allowed: false, rule };
      }
      if (layers.some(layer => machine.has(layer, port, local) && !isOpen(real(layer), namesThisMachine)))
        return { allowed: false, rule: 'own_address' };
      return { allowed: true };
    },
  };
}

/** The rule that refuses an address by itself, or undefined for a public one. */
export function ruleOf(address: Address): AddressRule | undefined {
  const found = TABLE.find(([, refused]) => covers(refused, address, 0));
  if (found) return found[0];
  if (address.family === 6 && !GLOBAL_6.some(open => covers(open, address, 0))) return 'reserved';
  return undefined;
}

/** The IPv4 addresses that an IPv6 address leads to. `::` and `::1` are themselves, not carriers. */
export function carried(address: Address): readonly Address[] {
  if (address.family === 4 || isZeroOrOne(address.bytes)) return [];
  const found = CARRIERS.filter(carrier => covers(carrier.of, address, 0)).flatMap(carrier => {
    const inner = extract(address.bytes, carrier.at, carrier.inverted);
    return carrier.perhaps && inner.bytes[0] === 0 ? [] : [inner];
  });
  const isatap = ISATAP.some(mark => mark.every((byte, index) => address.bytes[8 + index] === byte));
  return isatap ? [...found, extract(address.bytes, LAST_FOUR)] : found;
}

const isZeroOrOne = (bytes: Uint8Array): boolean =>
  (bytes[15] ?? 0) <= 1 && bytes.subarray(0, 15).every(byte => byte === 0);

function extract(bytes: Uint8Array, at: readonly number[], inverted = false): Address {
  const flip = inverted ? 0xff : 0;
  return address4(Uint8Array.from(at, index => (bytes[index] ?? 0) ^ flip));
}

const LOOPBACK_4_BITS = 8;
const LOOPBACK_4 = address4(Uint8Array.of(127, 0, 0, 1));
const LOOPBACK_6: Address = { family: 6, bytes: Uint8Array.of(...new Array<number>(15).fill(0), 1), text: '::1' };

/** Linux connects the unspecified address to loopback. */
function real(address: Address): Address {
  if (!isUnspecified(address)) return address;
  return address.family === 4 ? LOOPBACK_4 : LOOPBACK_6;
}

/** Does the range name addresses of one machine only, and this one among them? */
const namesThisMachine = (outer: Range, address: Address, port: number): boolean =>
  (outer.prefix === address.bytes.length * 8 || (isLoopback(address) && outer.prefix >= LOOPBACK_4_BITS)) &&
  covers(outer, address, port);
