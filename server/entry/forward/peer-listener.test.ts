import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { makeAuthority } from '../../../tests/harness/authority.ts';
import { claimFreePort } from '../../../tests/harness/free-port.ts';
import { listenForPeers } from './peer-listener.ts';

const HOST = '127.0.0.1';

test('serves only over TLS, and presents a renewed certificate to new connections', async () => {
  const authority = makeAuthority('Hosts');
  const http = createServer((_, response) => response.end('served'));
  const port = await claimFreePort();
  const listener = await listenForPeers(http, { host: HOST, port }, authority.issue(HOST));
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

test('the error for an address in use names the setting BERTH_PEER_URL', async () => {
  const otherServer = createServer().listen(0, HOST);
  await once(otherServer, 'listening');
  const { port } = otherServer.address() as AddressInfo; // A listening TCP server has an AddressInfo.
  try {
    await assert.rejects(listenForPeers(createServer(), { host: HOST, port }, undefined), /is in use.*BERTH_PEER_URL/);
  } finally {
    otherServer.close();
  }
});
