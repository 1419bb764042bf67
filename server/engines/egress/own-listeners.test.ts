// Under which addresses a listener of ours is reached.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownListeners } from './own-listeners.ts';

const face = (address: string, family: 'IPv4' | 'IPv6') =>
  family === 'IPv4'
    ? { address, family, netmask: '255.255.255.0', mac: '', internal: false, cidr: null }
    : { address, family, netmask: 'ffff::', mac: '', internal: false, cidr: null, scopeid: 0 };

const interfaces = () => ({ eth0: [face('192.168.77.1', 'IPv4'), face('fe80::1%eth0', 'IPv6')], gone: undefined });
const texts = (host: string, port: number): string[] =>
  ownListeners([{ host, port: 8080 }], interfaces)(port).map(each => `${each.address}/${each.prefix}:${each.port}`);

test('a listener on one address is that address', () => {
  assert.deepEqual(texts('127.0.0.1', 8080), ['127.0.0.1/32:8080']);
  assert.deepEqual(texts('::1', 8080), ['::1/128:8080']);
});

test('another port is none of ours', () => {
  for (const host of ['127.0.0.1', '0.0.0.0', 'localhost']) assert.deepEqual(texts(host, 8081), []);
});

test('a listener on all addresses, or under a name, is every address of the machine', () => {
  for (const host of ['0.0.0.0', '::', 'localhost', 'box.example'])
    assert.deepEqual(texts(host, 8080), [
      '127.0.0.0/8:8080',
      '::1/128:8080',
      '192.168.77.1/32:8080',
      'fe80::1/128:8080',
    ]);
});

test('the real interfaces of this machine can be asked', () => {
  assert.ok(ownListeners([{ host: '0.0.0.0', port: 1 }])(1).some(each => each.address === '127.0.0.1'));
});
