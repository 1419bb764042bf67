import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { makeAuthority } from '../../../tests/harness/authority.ts';
import { claimFreePort } from '../../../tests/harness/free-port.ts';
import { systemClock } from '../../kit/clock.ts';
import { listenForPeers } from './peer-listener.ts';

const HOST = '127.0.0.1';

test('serves only over TLS, and presents a renewed certificate to new connections', async () => {
  const authority = makeAuthority('Hosts');
  const http = createServer((_, response) => response.end('served'));
  const port = await claimFreePort();
  const listener = await listenForPeers(http, { host: HOST, port }, authority.issue(HOST), systemClock);
  const readFingerprint = async (): Promise<string> => {
    const socket = connect({ host: HOST, port, ca: authority.pem });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.write(`GET / HTTP/1.1\r\nhost: ${HOST}\r\n\r\n`);
    const [reply] = await once(socket, 'data');
    assert.match(String(reply), /served/);
    socket.destroy();
    return fingerprint256;
  };
  try {
    const firstFingerprint = await readFingerprint();
    assert.equal(await readFingerprint(), firstFingerprint);
    listener.renew(authority.issue(HOST));
    assert.notEqual(await readFingerprint(), firstFingerprint);
    await assert.rejects(once(get({ host: HOST, port }), 'response'), /socket hang up|ECONNRESET/);
  } finally {
    await listener.close();
  }
});

for (const isTls of [false, true])
  test(`close leaves a connection with a request to the HTTP server (TLS: ${isTls})`, async () => {
    const authority = makeAuthority('Hosts');
    const http = createServer((_, response) => response.end('served'));
    const port = await claimFreePort();
    const certificate = isTls ? authority.issue(HOST) : undefined;
    const listener = await listenForPeers(http, { host: HOST, port }, certificate, systemClock);
    const served = once(http, 'connection');
    const socket = isTls ? connect({ host: HOST, port, ca: authority.pem }) : connectTcp(port, HOST);
    const response = text(socket);
    await served;
    socket.write(`GET / HTTP/1.1\r\nhost: ${HOST}\r\nconnection: close\r\n\r\n`);
    await listener.close(); // The HTTP server has not read the request yet.
    assert.match(await response, /served/);
  });

test('close ends a connection whose handshake is not complete', async () => {
  const authority = makeAuthority('Hosts');
  const port = await claimFreePort();
  const listener = await listenForPeers(createServer(), { host: HOST, port }, authority.issue(HOST), systemClock);
  const socket = connectTcp(port, HOST);
  socket.on('error', () => {});
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  await listener.close();
  const timeout = setTimeout(2_000, 'still open', { ref: false }); // Less than the time limit of a handshake.
  assert.notEqual(await Promise.race([closed, timeout]), 'still open');
});

test('the error for an address in use names the setting BERTH_PEER_URL', async () => {
  const otherServer = createServer().listen(0, HOST);
  await once(otherServer, 'listening');
  const { port } = otherServer.address() as AddressInfo; // A listening TCP server has an AddressInfo.
  try {
    await assert.rejects(
      listenForPeers(createServer(), { host: HOST, port }, undefined, systemClock),
      /is in use.*BERTH_PEER_URL/,
    );
  } finally {
    otherServer.close();
  }
});
