import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import { OutboundEndpoints } from './departures.ts';

test('recognizes a connection by its local address and port while the connection is open', async () => {
  const server = createServer(accepted => accepted.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoints = new OutboundEndpoints();
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  const port = socket.localPort ?? assert.fail('no local port');
  endpoints.add(socket);
  assert.ok(endpoints.has('127.0.0.1', port));
  assert.ok(endpoints.has('::ffff:127.0.0.1', port));
  assert.ok(!endpoints.has('127.0.0.1', port + 1));
  socket.destroy();
  await once(socket, 'close');
  assert.ok(!endpoints.has('127.0.0.1', port));
  server.close();
});
