// The table of refused addresses: both ends of every range, embedded IPv4 addresses, and what the operator can allow.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Address, type AddressRange, covers, parseAddress, toRange } from './address.ts';
import { addressRules, ruleOf } from './rules.ts';
import type { ThisMachine } from './this-machine.ts';

const NO_MACHINE: ThisMachine = { has: () => false, listens: () => false };

/**
 * `own` contains the listeners of this server as ranges with a port, and the other addresses of the machine as ranges
 * without a port.
 */
const machineWith = (own: readonly AddressRange[]): ThisMachine => ({
  has: address => own.some(each => covers({ ...toRange(each), port: undefined }, address, 0)),
  listens: (address, port) =>
    own.some(each => each.port !== undefined && covers(toRange(each), connectedAddress(address), port)),
});

/** Returns the address to which Linux connects: loopback for the unspecified address. */
const connectedAddress = (address: Address): Address => {
  const loopback = parseAddress(address.text === '0.0.0.0' ? '127.0.0.1' : '::1');
  return loopback && address.bytes.every(byte => byte === 0) ? loopback : address;
};

function check(
  text: string,
  allowedRanges: readonly AddressRange[] = [],
  own: readonly AddressRange[] = [],
  port = 80,
): string {
  const address = parseAddress(text);
  assert.ok(address, text);
  const verdict = addressRules(allowedRanges, own.length === 0 ? NO_MACHINE : machineWith(own)).check(address, port);
  return verdict.isAllowed ? 'allowed' : verdict.rule;
}

const open = (text: string, port?: number): AddressRange => {
  const [address = '', prefix] = text.split('/');
  const family = address.includes(':') ? 6 : 4;
  return {
    address,
    prefix: Number(prefix ?? (family === 4 ? 32 : 128)),
    family,
    ...(port === undefined ? {} : { port }),
  };
};

/** Each row: first address, last address, rule. The rows contain every range and its neighbors. */
const IPV4_RANGES: ReadonlyArray<readonly [string, string, string]> = [
  ['0.0.0.0', '0.0.0.0', 'unspecified'],
  ['0.0.0.1', '0.255.255.255', 'reserved'],
  ['1.0.0.0', '9.255.255.255', 'allowed'],
  ['10.0.0.0', '10.255.255.255', 'private'],
  ['11.0.0.0', '100.63.255.255', 'allowed'],
  ['100.64.0.0', '100.100.100.199', 'shared'],
  ['100.100.100.200', '100.100.100.200', 'metadata'],
  ['100.100.100.201', '100.127.255.255', 'shared'],
  ['100.128.0.0', '126.255.255.255', 'allowed'],
  ['127.0.0.0', '127.255.255.255', 'loopback'],
  ['128.0.0.0', '168.63.129.15', 'allowed'],
  ['168.63.129.16', '168.63.129.16', 'metadata'],
  ['168.63.129.17', '169.253.255.255', 'allowed'],
  ['169.254.0.0', '169.254.169.253', 'link_local'],
  ['169.254.169.254', '169.254.169.254', 'metadata'],
  ['169.254.170.2', '169.254.170.2', 'metadata'],
  ['169.254.170.24', '169.254.255.255', 'link_local'],
  ['169.255.0.0', '172.15.255.255', 'allowed'],
  ['172.16.0.0', '172.31.255.255', 'private'],
  ['172.32.0.0', '191.255.255.255', 'allowed'],
  ['192.0.0.0', '192.0.0.191', 'protocol'],
  ['192.0.0.192', '192.0.0.192', 'metadata'],
  ['192.0.0.193', '192.0.0.255', 'protocol'],
  ['192.0.1.0', '192.0.1.255', 'allowed'],
  ['192.0.2.0', '192.0.2.255', 'documentation'],
  ['192.0.3.0', '192.88.98.255', 'allowed'],
  ['192.88.99.0', '192.88.99.255', 'relay'],
  ['192.88.100.0', '192.167.255.255', 'allowed'],
  ['192.168.0.0', '192.168.255.255', 'private'],
  ['192.169.0.0', '198.17.255.255', 'allowed'],
  ['198.18.0.0', '198.19.255.255', 'benchmarking'],
  ['198.20.0.0', '198.51.99.255', 'allowed'],
  ['198.51.100.0', '198.51.100.255', 'documentation'],
  ['198.51.101.0', '203.0.112.255', 'allowed'],
  ['203.0.113.0', '203.0.113.255', 'documentation'],
  ['203.0.114.0', '223.255.255.255', 'allowed'],
  ['224.0.0.0', '239.255.255.255', 'multicast'],
  ['240.0.0.0', '255.255.255.254', 'reserved'],
  ['255.255.255.255', '255.255.255.255', 'broadcast'],
];

const ipv4ToNumber = (text: string): number => text.split('.').reduce((value, part) => value * 256 + Number(part), 0);
const numberToIpv4 = (value: number): string => [24, 16, 8, 0].map(shift => (value / 2 ** shift) & 0xff).join('.');
const ipv4ToHex = (text: string): string => {
  const hex = ipv4ToNumber(text).toString(16).padStart(8, '0');
  return `${hex.slice(0, 4)}:${hex.slice(4)}`;
};

/** Returns both ends, the middle, and some addresses in between. They are the same in every run. */
function sampleAddresses(first: string, last: string): string[] {
  const from = ipv4ToNumber(first);
  const span = ipv4ToNumber(last) - from;
  return [0, 1 / 7, 1 / 3, 1 / 2, 0.77, 1].map(part => numberToIpv4(from + Math.floor(span * part)));
}

test('applies the rule of each IPv4 range from its first to its last address', () => {
  for (const [first, last, rule] of IPV4_RANGES)
    for (const address of sampleAddresses(first, last)) assert.equal(check(address), rule, address);
});

test('applies the rule of an IPv4 address, or a stricter rule, to the IPv6 addresses that embed it', () => {
  for (const [first, last, rule] of IPV4_RANGES)
    for (const address of sampleAddresses(first, last)) {
      const six = ipv4ToHex(address);
      const invertedHex = ipv4ToHex(numberToIpv4(0xffffffff - ipv4ToNumber(address)));
      const isZeroOrOne = rule === 'unspecified' || address === '0.0.0.1';
      assert.equal(check(`::ffff:${address}`), rule, `mapped ${address}`);
      assert.equal(check(`64:ff9b::${six}`), rule, `NAT64 ${address}`);
      assert.equal(check(`2002:${six}::1`), rule, `6to4 ${address}`);
      assert.equal(check(`2600:1:2:3:0:5efe:${six}`), rule, `ISATAP ${address}`);
      assert.equal(check(`2600:1:2:3:200:5efe:${six}`), rule, `ISATAP, universal bit, ${address}`);
      // The address is refused even if the embedded IPv4 address is public.
      const expectedRule = rule === 'allowed' ? 'transition' : rule;
      if (!isZeroOrOne) assert.equal(check(`::${six}`), expectedRule, `compatible ${address}`);
      assert.equal(check(`::ffff:0:${six}`), expectedRule, `translated ${address}`);
      assert.equal(check(`64:ff9b:1::${six}`) === 'allowed', false, `local NAT64 ${address}`);
      assert.equal(check(`2001:0:808:808:0:0:${invertedHex}`), expectedRule, `Teredo client ${address}`);
      assert.equal(check(`2001:0:${six}:0:0:f7f7:f7f7`), expectedRule, `Teredo server ${address}`);
    }
});

test('in an allowed local NAT64 prefix, refuses a private IPv4 address embedded at any of the four possible positions, and allows a public one', () => {
  const all = [open('64:ff9b:1::/48')];
  assert.equal(check('64:ff9b:1::a09:909', all), 'private');
  assert.equal(check('64:ff9b:1:a09:9:900::', all), 'private');
  assert.equal(check('64:ff9b:1:a:9:909::', all), 'private');
  assert.equal(check('64:ff9b:1:0:a:909:900:0', all), 'private');
  assert.equal(check('64:ff9b:1::808:808', all), 'allowed');
  assert.equal(check('64:ff9b:1:808:8:800::', all), 'allowed');
  assert.equal(check('64:ff9b:1::808:808'), 'transition');
});

const IPV6_CASES: ReadonlyArray<readonly [string, string]> = [
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::2', 'reserved'],
  ['64:ff9b:1::', 'transition'],
  ['64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'broadcast'],
  ['64:ff9b:2::1', 'reserved'],
  ['64:ff9b:0:0:0:1::', 'reserved'],
  ['100::1', 'reserved'],
  ['200::1', 'reserved'],
  ['1fff:ffff::1', 'reserved'],
  ['2000::1', 'allowed'],
  ['2001:1::1', 'protocol'],
  ['2001:2::1', 'benchmarking'],
  ['2001:10::1', 'protocol'],
  ['2001:20::1', 'protocol'],
  ['2001:1ff:ffff::1', 'protocol'],
  ['2001:200::1', 'allowed'],
  ['2001:db7:ffff::1', 'allowed'],
  ['2001:db8::1', 'documentation'],
  ['2001:db8:ffff:ffff::1', 'documentation'],
  ['2001:db9::1', 'allowed'],
  ['2606:4700:4700::1111', 'allowed'],
  ['2a00:1450:4001:827::200e', 'allowed'],
  ['3ffe:ffff::1', 'allowed'],
  ['3fff::1', 'documentation'],
  ['3fff:fff:ffff::1', 'documentation'],
  ['3fff:1000::1', 'allowed'],
  ['4000::1', 'reserved'],
  ['5f00::1', 'reserved'],
  ['fbff:ffff::1', 'reserved'],
  ['fc00::1', 'unique_local'],
  ['fd00::9', 'unique_local'],
  ['fd00:ec2::254', 'metadata'],
  ['fd20:ce::254', 'metadata'],
  ['fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'unique_local'],
  ['fe00::1', 'reserved'],
  ['fe80::1', 'link_local'],
  ['febf:ffff::1', 'link_local'],
  ['fec0::1', 'site_local'],
  ['feff:ffff::1', 'site_local'],
  ['ff00::1', 'multicast'],
  ['ff02::fb', 'multicast'],
  ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'multicast'],
];

test('applies the rule of each IPv6 range, and refuses unallocated space', () => {
  for (const [address, rule] of IPV6_CASES) assert.equal(check(address), rule, address);
});

test('applies the rule of the matching range to sample addresses from the entire IPv4 space', () => {
  for (let addressNumber = 0; addressNumber <= 0xffffffff; addressNumber += 65_521) {
    const address = numberToIpv4(addressNumber);
    const row = IPV4_RANGES.find(
      ([first, last]) => ipv4ToNumber(first) <= addressNumber && addressNumber <= ipv4ToNumber(last),
    );
    const parsedAddress = parseAddress(address);
    assert.ok(parsedAddress);
    if (row) assert.equal(ruleOf(parsedAddress) ?? 'allowed', row[2], address);
  }
});

test('allows only the range and port of an entry', () => {
  assert.equal(check('10.9.9.9', [open('10.0.0.0/8')]), 'allowed');
  assert.equal(check('10.9.9.9', [open('10.9.9.9', 80)]), 'allowed');
  assert.equal(check('10.9.9.9', [open('10.9.9.9', 81)]), 'private');
  assert.equal(check('10.9.9.10', [open('10.9.9.9')]), 'private');
  assert.equal(check('fd00::9', [open('fd00::/8')]), 'allowed');
  assert.equal(check('fd00::9', [open('0.0.0.0/0')]), 'unique_local');
  assert.equal(check('169.254.169.254', [open('10.0.0.0/8')]), 'metadata');
});

test('allows an IPv4 range in every IPv6 form that embeds IPv4 addresses', () => {
  const allowedRanges = [open('10.0.0.0/8')];
  for (const address of ['::ffff:10.9.9.9', '64:ff9b::a09:909', '2002:a09:909::1', '2600::5efe:a09:909'])
    assert.equal(check(address, allowedRanges), 'allowed', address);
});

test('does not allow an embedded IPv4 address if only its IPv6 prefix has an entry', () => {
  assert.equal(check('64:ff9b::a9fe:a9fe', [open('64:ff9b::/96')]), 'metadata');
  assert.equal(check('2002:7f00:1::1', [open('2002::/16')]), 'loopback');
  assert.equal(check('::7f00:1', [open('::/96')]), 'loopback');
  assert.equal(check('::7f00:1', [open('::/96'), open('127.0.0.1')]), 'allowed');
});

test("refuses this server's listeners even inside an allowed range", () => {
  const own = [open('127.0.0.1', 8080), open('::1', 8080), open('203.0.114.7', 8080)];
  const all = [open('0.0.0.0/0'), open('::/0')];
  const spellings = [
    '127.0.0.1',
    '::ffff:127.0.0.1',
    '0.0.0.0',
    '::',
    '::1',
    '::7f00:1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '203.0.114.7',
  ];
  for (const address of spellings) assert.equal(check(address, all, own, 8080), 'own_service', address);
  assert.equal(check('127.0.0.1', [open('127.0.0.0/8')], own, 8080), 'own_service');
  assert.equal(check('127.0.0.1', [open('127.0.0.1')], own, 8080), 'own_service', 'the entry has no port');
  assert.equal(check('127.0.0.1', [open('127.0.0.0/8', 8080)], own, 8080), 'own_service', 'the entry is a range');
});

test('allows a listener of this server only if an entry has its exact address and port', () => {
  const own = [open('127.0.0.1', 8080)];
  assert.equal(check('127.0.0.1', [open('127.0.0.1', 8080)], own, 8080), 'allowed');
  assert.equal(check('127.0.0.1', [open('127.0.0.1', 9100)], own, 9100), 'allowed');
  assert.equal(check('127.0.0.1', [open('127.0.0.0/8')], own, 9100), 'allowed');
});

test('refuses addresses of this machine on every port, even inside an allowed range', () => {
  const own = [open('203.0.114.7'), open('2600::7'), open('10.0.0.7')];
  const all = [open('0.0.0.0/0'), open('::/0')];
  for (const address of ['203.0.114.7', '::ffff:203.0.114.7', '64:ff9b::cb00:7207', '2002:cb00:7207::1', '2600::7'])
    for (const allowedRanges of [[], all, [open('203.0.114.0/24'), open('2600::/64')]])
      assert.match(check(address, allowedRanges, own), /^own_address$|^transition$/, address);
  assert.equal(check('10.0.0.7', [], own), 'private');
  assert.equal(check('10.0.0.7', [open('10.0.0.0/8')], own), 'own_address');
  assert.equal(check('10.0.0.8', [open('10.0.0.0/8')], own), 'allowed', 'another machine');
});

test('allows an address of this machine only with an entry for that address, and loopback only with an entry within loopback', () => {
  const own = [open('203.0.114.7'), open('127.0.0.0/8'), open('::1')];
  assert.equal(check('203.0.114.7', [open('203.0.114.7')], own), 'allowed');
  assert.equal(check('203.0.114.7', [open('203.0.114.7', 80)], own), 'allowed');
  assert.equal(check('203.0.114.7', [open('203.0.114.7', 81)], own), 'own_address');
  assert.equal(check('127.0.0.1', [open('0.0.0.0/0')], own), 'own_address');
  assert.equal(check('127.0.0.1', [open('127.0.0.0/8')], own), 'allowed');
  assert.equal(check('127.0.0.1', [open('127.0.0.0/30', 80)], own), 'allowed');
  for (const allowedRange of ['::/0', '::/8', '::/96'])
    assert.equal(check('::1', [open(allowedRange)], own), 'own_address', allowedRange);
  assert.equal(check('::1', [open('::1')], own), 'allowed');
});

test('throws for an invalid entry', () => {
  assert.throws(() => addressRules([{ address: 'x', prefix: 8, family: 4 }], NO_MACHINE), TypeError);
});

test('reports whether an entry allows an address and port', () => {
  const rules = addressRules([open('10.0.0.0/8'), open('127.0.0.1', 9100)], NO_MACHINE);
  const isAllowed = (text: string, port: number): boolean => {
    const address = parseAddress(text);
    return address !== undefined && rules.isAllowedByOperator(address, port);
  };
  assert.deepEqual(
    [isAllowed('10.1.2.3', 80), isAllowed('127.0.0.1', 9100), isAllowed('::ffff:127.0.0.1', 9100)],
    [true, true, true],
  );
  assert.deepEqual([isAllowed('127.0.0.1', 80), isAllowed('93.184.216.34', 80)], [false, false]);
});
