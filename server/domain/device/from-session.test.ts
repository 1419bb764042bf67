import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIsFromSession } from './from-session.ts';

const isFromSession = createIsFromSession({
  hasOutgoingConnection: (address, port) => address === '127.0.0.1' && port === 40_000,
  isThisMachine: address => address === '203.0.113.7',
});

test('treats a request as sent from a session if its peer address and port belong to an egress proxy connection', () => {
  assert.ok(isFromSession({ address: '127.0.0.1', port: 40_000, client: '127.0.0.1' }));
  assert.ok(isFromSession({ address: '127.0.0.1', port: 40_000, client: '198.51.100.1' }), 'whatever it reports');
  assert.ok(!isFromSession({ address: '127.0.0.1', port: 40_001, client: '127.0.0.1' }));
  assert.ok(!isFromSession({ address: '127.0.0.1', client: '127.0.0.1' }));
});

test('treats a request through a proxy as sent from a session if its client address belongs to this machine', () => {
  assert.ok(isFromSession({ address: '127.0.0.1', port: 1, client: '203.0.113.7' }));
  assert.ok(!isFromSession({ address: '127.0.0.1', port: 1, client: '203.0.113.8' }));
  assert.ok(!isFromSession({ address: '203.0.113.7', port: 1, client: '203.0.113.7' }), 'a person on this machine');
});
