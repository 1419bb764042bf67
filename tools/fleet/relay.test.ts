import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../tests/harness/until.ts';
import { relay } from './relay.ts';

test('a client that disconnects before the endpoint is connected leaves no connection to the endpoint', async t => {
  const connections = new Set<Socket>();
  const endpoint = createServer(socket => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  endpoint.listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  const { port } = endpoint.address() as AddressInfo; // a listening TCP server has an address of this type
  const { port: relayPort, close } = await relay('127.0.0.1:0', [`127.0.0.1:${port}`]);
  t.after(() => {
    close();
    endpoint.close();
    for (const socket of connections) socket.destroy();
  });
  for (let clientIndex = 0; clientIndex < 20; clientIndex++) {
    const earlyClient = connect(relayPort, '127.0.0.1');
    earlyClient.once('connect', () => earlyClient.resetAndDestroy());
    await once(earlyClient, 'close');
  }
  // The response of this client shows that the relay has accepted all earlier clients.
  const client = connect(relayPort, '127.0.0.1');
  client.write('hello');
  assert.equal(String((await once(client, 'data'))[0]), 'hello');
  await eventually(
    'the connections of the other clients to end',
    () => connections.size,
    size => size === 1,
  );
  client.destroy();
});
