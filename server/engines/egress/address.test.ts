// All spellings of an address are parsed to the same bytes, and a range covers exactly the addresses with its prefix.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { covers, matchesExactly, parseAddress, parseRange, toRange } from './address.ts';

const textOf = (text: string): string | undefined => parseAddress(text)?.text;
const bytesOf = (text: string): number[] => [...(parseAddress(text)?.bytes ?? [])];

test('parses all IPv6 spellings of an address to the same bytes', () => {
  const spellings = ['fd00::9', 'FD00::0009', 'fd00:0:0:0:0:0:0:9', 'fd00:0000::0:9', 'fd00::0.0.0.9'];
  for (const spelling of spellings) assert.deepEqual(bytesOf(spelling), bytesOf('fd00::9'), spelling);
  assert.deepEqual(bytesOf('1:2:3:4:5:6:7:8'), [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]);
  assert.deepEqual(bytesOf('1::'), [0, 1, ...new Array<number>(14).fill(0)]);
  assert.deepEqual(bytesOf('::'), new Array<number>(16).fill(0));
});

test('parses an IPv4-mapped address as its IPv4 address', () => {
  for (const spelling of ['::ffff:10.9.9.9', '::FFFF:a09:909', '0:0:0:0:0:ffff:10.9.9.9'])
    assert.equal(textOf(spelling), '10.9.9.9', spelling);
  assert.equal(parseAddress('::fffe:10.9.9.9')?.family, 6);
  assert.equal(parseAddress('::ffff:0:10.9.9.9')?.family, 6);
});

test('rejects names, short and octal forms, zone ids and brackets', () => {
  const no = [
    '',
    'a.test',
    '10.1',
    '0x7f.1',
    '0177.0.0.1',
    '2130706433',
    '1.2.3.4.',
    '[::1]',
    'fe80::1%eth0',
    '1.2.3.4/8',
    '::1 ',
  ];
  for (const text of no) assert.equal(parseAddress(text), undefined, text);
});

test('a range covers exactly the addresses with its prefix, at every prefix length', () => {
  const bits = (address: string, flippedBit: number): string => {
    const bytes = bytesOf(address);
    bytes[flippedBit >> 3] = (bytes[flippedBit >> 3] ?? 0) ^ (0x80 >> (flippedBit & 7));
    if (bytes.length === 4) return bytes.join('.');
    return Array.from({ length: 8 }, (_, at) =>
      (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
    ).join(':');
  };
  for (const [address, length] of [
    ['10.170.85.200', 32],
    ['fdaa:5555:1234:ffff:8001:7ffe:aaaa:5555', 128],
  ] as const)
    for (let prefix = 0; prefix <= length; prefix += 1)
      for (let flippedBit = 0; flippedBit < length; flippedBit += 1) {
        const otherAddress = parseAddress(bits(address, flippedBit));
        assert.ok(otherAddress);
        assert.equal(
          covers(parseRange(`${address}/${prefix}`), otherAddress, 1),
          flippedBit >= prefix,
          `${otherAddress.text} in /${prefix}`,
        );
      }
});

test('a range covers only its own port and family, and an exact match requires a range of one address with the same port', () => {
  const rangeWithPort = toRange({ address: '127.0.0.1', prefix: 32, family: 4, port: 9100 });
  const loopback = parseAddress('127.0.0.1');
  const six = parseAddress('7f00:1::');
  assert.ok(loopback && six);
  assert.equal(covers(rangeWithPort, loopback, 9100), true);
  assert.equal(covers(rangeWithPort, loopback, 9101), false);
  assert.equal(covers(toRange({ address: '127.0.0.1', prefix: 0, family: 4 }), six, 9100), false);
  assert.equal(matchesExactly(rangeWithPort, loopback, 9100), true);
  assert.equal(matchesExactly(toRange({ address: '127.0.0.1', prefix: 32, family: 4 }), loopback, 9100), false);
  assert.equal(
    matchesExactly(toRange({ address: '127.0.0.0', prefix: 8, family: 4, port: 9100 }), loopback, 9100),
    false,
  );
});

test('treats a range of IPv4-mapped addresses as the range of IPv4 addresses', () => {
  const mappedRange = toRange({ address: '::ffff:10.0.0.0', prefix: 104, family: 6 });
  const insideAddress = parseAddress('10.200.0.1');
  const outsideAddress = parseAddress('11.0.0.1');
  assert.ok(insideAddress && outsideAddress);
  assert.equal(covers(mappedRange, insideAddress, 1), true);
  assert.equal(covers(mappedRange, outsideAddress, 1), false);
});

test('throws for an invalid range', () => {
  for (const [address, prefix] of [
    ['10.0.0.0', 33],
    ['nowhere', 8],
    ['::ffff:10.0.0.0', 90],
    ['10.0.0.0', Number.NaN],
  ] as const)
    assert.throws(() => toRange({ address, prefix, family: address.includes(':') ? 6 : 4 }), TypeError);
});
