import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress } from './client-address.ts';

const TRUSTED = ['10.0.0.0/24', '2001:db8::/32'];

for (const [what, remoteAddress, forwardedFor, expected] of [
  ['is the peer address without the header', '10.0.0.1', undefined, '10.0.0.1'],
  ['ignores the header from an untrusted peer', '198.51.100.1', '203.0.113.7', '198.51.100.1'],
  ['is taken from the header of a trusted proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['is IPv4 where it was written as IPv6', '::ffff:10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
  ['ignores entries to the left of the first untrusted hop', '10.0.0.1', '1.1.1.1, 203.0.113.7', '203.0.113.7'],
  ['skips trusted hops', '10.0.0.1', '203.0.113.7, 2001:db8::5, 10.0.0.9', '203.0.113.7'],
  ['is the first hop if all are trusted', '10.0.0.1', '10.0.0.7,10.0.0.8', '10.0.0.7'],
  ['is without a port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['is without a port after IPv6', '10.0.0.1', '[2001:db7::1]:4711', '2001:db7::1'],
  ['stops at an entry that is not an address', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
  ['treats an empty header as absent', '10.0.0.1', '', '10.0.0.1'],
] as const)
  test(`the client's address ${what}`, () => {
    assert.equal(clientAddress({ remoteAddress, forwardedFor }, TRUSTED), expected);
  });

test("the client's address is the peer address if no proxy is trusted", () => {
  assert.equal(clientAddress({ remoteAddress: '10.0.0.1', forwardedFor: '203.0.113.7' }, []), '10.0.0.1');
});
