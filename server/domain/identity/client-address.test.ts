import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress } from './client-address.ts';

const TRUSTED = ['10.0.0.0/24', '2001:db8::/32'];

for (const [what, remoteAddress, forwardedFor, expected] of [
  ['without the header it is the other end of the socket', '10.0.0.1', undefined, '10.0.0.1'],
  ['one that is not trusted may write what it likes', '198.51.100.1', '203.0.113.7', '198.51.100.1'],
  ['a trusted proxy says for whom it asks', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['IPv4 written as IPv6 is IPv4', '::ffff:10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
  [
    'what stands left of the first hop that is not trusted counts for nothing',
    '10.0.0.1',
    '1.1.1.1, 203.0.113.7',
    '203.0.113.7',
  ],
  ['trusted hops are skipped', '10.0.0.1', '203.0.113.7, 2001:db8::5, 10.0.0.9', '203.0.113.7'],
  ['where all are trusted it is the first', '10.0.0.1', '10.0.0.7,10.0.0.8', '10.0.0.7'],
  ['a port is left out', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['a port behind IPv6 too', '10.0.0.1', '[2001:db7::1]:4711', '2001:db7::1'],
  ['what is no address ends the search', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
  ['an empty header is none', '10.0.0.1', '', '10.0.0.1'],
] as const)
  test(`the client's address: ${what}`, () => {
    assert.equal(clientAddress({ remoteAddress, forwardedFor }, TRUSTED), expected);
  });

test("the client's address: without trusted proxies the header is not read", () => {
  assert.equal(clientAddress({ remoteAddress: '10.0.0.1', forwardedFor: '203.0.113.7' }, []), '10.0.0.1');
});
