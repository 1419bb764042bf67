// Which addresses belong to this machine, and which of them reach a listener of this server.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { parseAddress } from './address.ts';
import { createThisMachine, type ThisMachine, type ThisMachineOptions } from './this-machine.ts';

const interfaceEntry = (address: string, family: 'IPv4' | 'IPv6') =>
  family === 'IPv4'
    ? { address, family, netmask: '255.255.255.0', mac: '', internal: false, cidr: null }
    : { address, family, netmask: 'ffff::', mac: '', internal: false, cidr: null, scopeid: 0 };

const interfaces = () => ({
  eth0: [interfaceEntry('192.168.77.1', 'IPv4'), interfaceEntry('fe80::1%eth0', 'IPv6')],
  gone: undefined,
});
const clock = { monotonicMs: () => 0 };

const machineOf = (parts: Partial<ThisMachineOptions> = {}): ThisMachine =>
  createThisMachine({ listeners: [], clock, interfaces, ...parts });

const addressOf = (text: string) => {
  const address = parseAddress(text);
  assert.ok(address, text);
  return address;
};

const OWN = ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '192.168.77.1', '::ffff:192.168.77.1', 'fe80::1'];
const FOREIGN_ADDRESSES = ['192.168.77.2', '203.0.114.7', 'fe80::2', '::2', '128.0.0.1'];

test('treats loopback and the addresses of every interface as this machine, on every port', () => {
  const machine = machineOf();
  for (const text of OWN) assert.equal(machine.has(addressOf(text), 5432), true, text);
  for (const text of FOREIGN_ADDRESSES) assert.equal(machine.has(addressOf(text), 5432), false, text);
});

test('treats the local address of a connection as this machine, even if no interface lists it', () => {
  const machine = machineOf();
  assert.equal(machine.has(addressOf('203.0.114.7'), 80, '203.0.114.7'), true);
  assert.equal(machine.has(addressOf('203.0.114.7'), 80, '192.168.77.1'), false);
});

test('detects a new address within a second', () => {
  const interfaceEntries = [interfaceEntry('192.168.77.1', 'IPv4')];
  let nowMs = 0;
  let readCount = 0;
  const machine = machineOf({
    clock: { monotonicMs: () => nowMs },
    interfaces: () => {
      readCount += 1;
      return { eth0: [...interfaceEntries] };
    },
  });
  const late = addressOf('203.0.114.7');
  assert.equal(machine.has(late, 80), false);
  interfaceEntries.push(interfaceEntry('203.0.114.7', 'IPv4'));
  nowMs = 999;
  assert.equal(machine.has(late, 80), false);
  assert.equal(readCount, 1);
  nowMs = 1000;
  assert.equal(machine.has(late, 80), true);
  interfaceEntries.pop();
  nowMs = 2000;
  assert.equal(machine.has(late, 80), false);
});

test('does not treat the public port of a TLS proxy in front of the service as this machine', () => {
  const machine = machineOf({ publicPort: 443 });
  assert.equal(machine.has(addressOf('192.168.77.1'), 443, '192.168.77.1'), false);
  assert.equal(machine.has(addressOf('192.168.77.1'), 80), true);
});

test('finds a listener that is bound to one address at that address only, except that 0.0.0.0 also reaches 127.0.0.1', () => {
  const four = machineOf({ listeners: [{ host: '127.0.0.1', port: 8080 }] });
  assert.equal(four.listens(addressOf('127.0.0.1'), 8080), true);
  assert.equal(four.listens(addressOf('0.0.0.0'), 8080), true, 'Linux connects this address to loopback');
  for (const text of ['192.168.77.1', '127.0.0.2', '::1'])
    assert.equal(four.listens(addressOf(text), 8080), false, text);
  const six = machineOf({ listeners: [{ host: '::1', port: 8080 }] });
  assert.equal(six.listens(addressOf('::1'), 8080), true);
  assert.equal(six.listens(addressOf('127.0.0.1'), 8080), false);
});

test('finds no listener on another port', () => {
  for (const host of ['127.0.0.1', '0.0.0.0', 'localhost'])
    assert.equal(machineOf({ listeners: [{ host, port: 8080 }] }).listens(addressOf('127.0.0.1'), 8081), false);
});

test('finds a listener bound to a wildcard address or a host name at every address of the machine', () => {
  for (const host of ['0.0.0.0', '::', 'localhost', 'box.example']) {
    const machine = machineOf({ listeners: [{ host, port: 8080 }] });
    for (const text of OWN) assert.equal(machine.listens(addressOf(text), 8080), true, text);
    for (const text of FOREIGN_ADDRESSES) assert.equal(machine.listens(addressOf(text), 8080), false, text);
  }
});

test('treats the addresses of the real network interfaces as this machine, but no other addresses', () => {
  const machine = createThisMachine({ listeners: [], clock });
  for (const entries of Object.values(networkInterfaces()))
    for (const { address } of entries ?? []) assert.equal(machine.has(addressOf(address), 1), true, address);
  for (const text of FOREIGN_ADDRESSES) assert.equal(machine.has(addressOf(text), 1), false, text);
});
