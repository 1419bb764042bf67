// IP addresses and ranges as bytes, so that all spellings of an address are equal. An IPv4-mapped IPv6 address is
// treated as its IPv4 address, as the kernel does. rules.ts decides which addresses may be reached.
import { isIP } from 'node:net';

export interface Address {
  readonly family: 4 | 6;
  readonly bytes: Uint8Array;
  /** The address in a form that `net.connect` accepts. */
  readonly text: string;
}

/** One entry of BERTH_EGRESS_ALLOW: `10.0.0.0/8`, or `127.0.0.1/32` with port 9100. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
  readonly family: 4 | 6;
  /** Absent if the entry applies to every port. */
  readonly port?: number;
}

export interface Range {
  readonly family: 4 | 6;
  readonly bytes: Uint8Array;
  readonly prefixBits: number;
  readonly port: number | undefined;
}

const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);
const MAPPED_BITS = 96;

/** Parses an IP address. Returns undefined for names, zone ids, brackets, and short or octal forms. */
export function parseAddress(text: string): Address | undefined {
  const family = isIP(text);
  if (family === 4) return ipv4Address(ipv4Bytes(text));
  if (family !== 6 || text.includes('%')) return undefined;
  const bytes = ipv6Bytes(text);
  if (startsWith(bytes, MAPPED_PREFIX, MAPPED_BITS)) return ipv4Address(bytes.subarray(12));
  return { family, bytes, text: text.toLowerCase() };
}

export function ipv4Address(bytes: Uint8Array): Address {
  return { family: 4, bytes, text: bytes.join('.') };
}

/** Throws for an invalid range. Ranges from the configuration have already been validated. */
export function toRange(rangeEntry: AddressRange): Range {
  const address = parseAddress(rangeEntry.address);
  if (!address) throw new TypeError(`${rangeEntry.address} is not an IP address`);
  const prefixBits = address.family === rangeEntry.family ? rangeEntry.prefix : rangeEntry.prefix - MAPPED_BITS;
  if (!(prefixBits >= 0 && prefixBits <= address.bytes.length * 8))
    throw new TypeError(`${rangeEntry.address}/${rangeEntry.prefix} is not a valid CIDR range`);
  return { family: address.family, bytes: address.bytes, prefixBits, port: rangeEntry.port };
}

/** Parses a range such as `10.0.0.0/8`. */
export function parseRange(text: string): Range {
  const [address = '', prefix] = text.split('/');
  return toRange({ address, prefix: Number(prefix), family: isIP(address) === 6 ? 6 : 4 });
}

export const covers = (outerRange: Range, address: Address, port: number): boolean =>
  outerRange.family === address.family &&
  (outerRange.port === undefined || outerRange.port === port) &&
  startsWith(address.bytes, outerRange.bytes, outerRange.prefixBits);

/** Whether the range is exactly this address and this port. */
export const matchesExactly = (outerRange: Range, address: Address, port: number): boolean =>
  outerRange.port !== undefined &&
  outerRange.prefixBits === address.bytes.length * 8 &&
  covers(outerRange, address, port);

function startsWith(bytes: Uint8Array, start: Uint8Array, bits: number): boolean {
  const wholeBytes = bits >> 3;
  for (let index = 0; index < wholeBytes; index += 1) if (bytes[index] !== start[index]) return false;
  const mask = (0xff00 >> (bits & 7)) & 0xff;
  return ((bytes[wholeBytes] ?? 0) & mask) === ((start[wholeBytes] ?? 0) & mask);
}

const ipv4Bytes = (text: string): Uint8Array => Uint8Array.from(text.split('.'), Number);

function ipv6Bytes(text: string): Uint8Array {
  const [head = '', tail] = text.split('::');
  const headBytes = bytesOfGroups(head);
  const tailBytes = tail === undefined ? [] : bytesOfGroups(tail);
  const bytes = new Uint8Array(16);
  bytes.set(headBytes);
  bytes.set(tailBytes, 16 - tailBytes.length);
  return bytes;
}

const bytesOfGroups = (text: string): number[] => (text === '' ? [] : text.split(':').flatMap(bytesOfGroup));

function bytesOfGroup(text: string): number[] {
  if (text.includes('.')) return [...ipv4Bytes(text)];
  const value = Number.parseInt(text, 16);
  return [value >> 8, value & 0xff];
}
