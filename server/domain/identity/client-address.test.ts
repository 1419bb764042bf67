import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress } from './client-address.ts';

const TRUSTED_PROXIES = ['10.0.0.0/24', '2001:db8::/32'];

for (const [what, remoteAddress, forwardedFor, expected] of [
  ['is the peer address if the header is missing', '10.0.0.1', undefined, '10.0.0.1'],
  ['is the peer address if the peer is not trusted', '198.51.100.1', '203.0.113.7', '198.51.100.1'],
  ['is taken from the header if the peer is a trusted proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['is IPv4 if it was sent as an IPv4-mapped IPv6 address', '::ffff:10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
  ['is the last untrusted hop, regardless of the entries before it', '10.0.0.1', '1.1.1.1, 203.0.113.7', '203.0.113.7'],
  ['is the last untrusted hop before trusted hops', '10.0.0.1', '203.0.113.7, 2001:db8::5, 10.0.0.9', '203.0.113.7'],
  ['is the first hop if all hops are trusted', '10.0.0.1', '10.0.0.7,10.0.0.8', '10.0.0.7'],
  ['excludes the port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['excludes the port of an IPv6 address', '10.0.0.1', '[2001:db7::1]:4711', '2001:db7::1'],
  ['is the hop that reported an invalid address', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
  ['is the peer address if the header is empty', '10.0.0.1', '', '10.0.0.1'],
] as const)
  test(`the client's address ${what}`, () => {
    assert.equal(clientAddress({ remoteAddress, forwardedFor }, TRUSTED_PROXIES), expected);
  });

test("the client's address is the peer address if no proxy is trusted", () => {
  assert.equal(clientAddress({ remoteAddress: '10.0.0.1', forwardedFor: '203.0.113.7' }, []), '10.0.0.1');
});
