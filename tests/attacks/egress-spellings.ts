// The ways in which a page might spell or embed an address, as pure functions.

export interface Spelling {
  /** The spelling in a URL or in CONNECT. */
  readonly host: string;
  /** The address that the spelling leads to if it is not refused. */
  readonly reachedAddress: string;
  readonly rule: string;
}

/** IPv4 addresses that a session must not reach. `0.0.0.0` and `127.0.0.1` belong to every machine. */
export const FORBIDDEN_IPV4: ReadonlyArray<readonly [address: string, rule: string]> = [
  ['169.254.169.254', 'metadata'],
  ['10.9.9.9', 'private'],
  ['172.16.5.5', 'private'],
  ['192.168.77.1', 'private'],
  ['100.64.0.9', 'shared'],
  ['169.254.7.7', 'link_local'],
  ['198.18.0.9', 'benchmarking'],
  ['127.0.0.1', 'loopback'],
];

export const FORBIDDEN_IPV6: ReadonlyArray<readonly [address: string, rule: string]> = [
  ['fd00::9', 'unique_local'],
  ['fd00:ec2::254', 'metadata'],
  ['fec0::9', 'site_local'],
  ['2001:db8::9', 'documentation'],
  ['64:ff9b:1::9', 'transition'],
  ['100::9', 'reserved'],
  ['::1', 'loopback'],
];

const octetsOf = (address: string): readonly number[] => address.split('.').map(Number);
const numberOf = (address: string): number => octetsOf(address).reduce((sum, part) => sum * 256 + part, 0);
const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');

function groupsOf(address: string): string {
  const all = hex(numberOf(address), 8);
  return `${Number.parseInt(all.slice(0, 4), 16).toString(16)}:${Number.parseInt(all.slice(4), 16).toString(16)}`;
}

/** Spellings of the address itself. */
export function spellingsOfIpv4(address: string): readonly string[] {
  const octets = octetsOf(address);
  const [a = 0, b = 0, c = 0, d = 0] = octets;
  const addressNumber = numberOf(address);
  return [
    address,
    `${address}.`,
    `${addressNumber}`,
    `0x${hex(addressNumber, 8)}`,
    `0X${hex(addressNumber, 8).toUpperCase()}`,
    `0${addressNumber.toString(8)}`,
    octets.map(part => `0${part.toString(8)}`).join('.'),
    octets.map(part => `000${part.toString(8)}`).join('.'),
    octets.map(part => `0x${part.toString(16)}`).join('.'),
    octets.map(part => `0x00${part.toString(16)}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `0x${a.toString(16)}.0${b.toString(8)}.${c * 256 + d}`,
    address.replaceAll('.', '%2e'),
    address.replace(/\d/g, digit => `%3${digit}`),
    encodeURIComponent(address.replace(/\d/g, digit => String.fromCodePoint(0xff10 + Number(digit)))),
    address.replaceAll('.', '%E3%80%82'),
    `[::ffff:${address}]`,
    `[::FFFF:${groupsOf(address)}]`,
    `[0:0:0:0:0:ffff:${groupsOf(address)}]`,
    `[0000:0000:0000:0000:0000:ffff:${address}]`,
  ];
}

/**
 * The IPv6 addresses that embed this IPv4 address: NAT64, 6to4, Teredo, ISATAP, IPv4-translated and IPv4-compatible.
 */
export function embeddingAddressesOf(address: string): readonly string[] {
  const embeddedGroups = groupsOf(address);
  const invertedHex = (0xffffffff - numberOf(address)).toString(16).padStart(8, '0');
  return [
    `64:ff9b::${embeddedGroups}`,
    `64:ff9b:1::${embeddedGroups}`,
    `2002:${embeddedGroups}::1`,
    `2001:0:808:808::${invertedHex.slice(0, 4)}:${invertedHex.slice(4)}`,
    `2606:2800:220:1:0:5efe:${embeddedGroups}`,
    `2606:2800:220:1:200:5efe:${embeddedGroups}`,
    `::ffff:0:${embeddedGroups}`,
    `::${embeddedGroups}`,
  ];
}

export function spellingsOfIpv6(address: string): readonly string[] {
  const padded = address.replace(/[0-9a-f]+/g, group => group.padStart(4, '0'));
  return [`[${address}]`, `[${address.toUpperCase()}]`, `[${padded}]`];
}
