// Tests the data that a tunnel sends to the browser: no byte is lost, repeated or overwritten, whatever the speed of
// either side.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { pollUntil, withTimeout } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { join, OutsideSocket } from './tunnel.ts';

const WAIT_TIMEOUT_MS = 30_000;

interface Ends {
  readonly outsideSocket: OutsideSocket;
  /** The server's end of the browser connection, and the browser's end. */
  readonly ours: Socket;
  readonly browser: Socket;
}

/**
 * Returns an outside socket whose peer runs `runPeer`, and a browser connection. They are not connected to each other
 * yet.
 */
async function ends(t: TestContext, runPeer: (socket: Socket) => void): Promise<Ends> {
  const port = async (onConnection: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ allowHalfOpen: true }, socket => onConnection(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return (server.address() as AddressInfo).port;
  };
  const acceptedSocket = Promise.withResolvers<Socket>();
  const [outsidePort, browserPort] = await Promise.all([port(runPeer), port(acceptedSocket.resolve)]);
  const outsideSocket = new OutsideSocket(new BigReads(4));
  const browser = connect({ port: browserPort, host: '127.0.0.1', allowHalfOpen: true });
  outsideSocket.connect(outsidePort, '127.0.0.1');
  await Promise.all([once(outsideSocket, 'connect'), once(browser, 'connect')]);
  t.after(() => [outsideSocket, browser].map(socket => socket.destroy()));
  return { outsideSocket, ours: await acceptedSocket.promise, browser };
}

async function readToEnd(browser: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  browser.on('data', part => parts.push(part));
  await withTimeout(WAIT_TIMEOUT_MS, 'the end of the data at the browser', () => once(browser, 'end'));
  return Buffer.concat(parts);
}

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

test('delivers all data that arrived before the two sockets were joined, in order', async t => {
  const bytes = randomBytes(1_000_000);
  const { outsideSocket, ours, browser } = await ends(t, socket => socket.end(bytes));
  await pollUntil(WAIT_TIMEOUT_MS, 'the first bytes', () => (outsideSocket.bytesRead > 0 ? true : undefined));
  const bytesReadBefore = outsideSocket.bytesRead;
  await new Promise(done => setImmediate(done));
  assert.equal(outsideSocket.bytesRead, bytesReadBefore, 'no more is read than fits into the buffer');
  join(ours, outsideSocket);
  assert.equal(sha(await readToEnd(browser)), sha(bytes));
});

test('closes the tunnel if the remote side closed its connection before the two sockets were joined', async t => {
  const { outsideSocket, ours, browser } = await ends(t, socket => socket.end());
  await pollUntil(WAIT_TIMEOUT_MS, 'the end', () => (outsideSocket.readableEnded ? true : undefined));
  join(ours, outsideSocket);
  assert.equal((await readToEnd(browser)).length, 0);
});

test('delivers writes of every size in order and unchanged', async t => {
  const sizes = [1, 2, 100, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 300_000, 7, 1_000_000, 1];
  const parts = sizes.map(size => randomBytes(size));
  const { outsideSocket, ours, browser } = await ends(t, async socket => {
    for (const part of parts) if (!socket.write(part)) await once(socket, 'drain');
    socket.end();
  });
  join(ours, outsideSocket);
  assert.equal(sha(await readToEnd(browser)), sha(Buffer.concat(parts)));
});

test('delivers all bytes unchanged to a reader that pauses and resumes', async t => {
  const bytes = randomBytes(24_000_000);
  const { outsideSocket, ours, browser } = await ends(t, socket => socket.end(bytes));
  join(ours, outsideSocket);
  let seen = 0;
  browser.on('data', part => {
    seen += part.length;
    if (seen < 1_000_000) return;
    seen = 0;
    browser.pause();
    setImmediate(() => setImmediate(() => browser.resume()));
  });
  assert.equal(sha(await readToEnd(browser)), sha(bytes));
});

test('does not mix the bytes of concurrent tunnels', async t => {
  const all = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const bytes = Buffer.alloc(2_000_000, index + 1);
      const { outsideSocket, ours, browser } = await ends(t, socket => socket.end(bytes));
      join(ours, outsideSocket);
      const got = await readToEnd(browser);
      return got.equals(bytes);
    }),
  );
  assert.deepEqual(all, new Array(12).fill(true));
});

/** A TLS connection with a pre-shared key, so that no certificate is needed. */
async function tlsOutside(t: TestContext): Promise<{ outsideSocket: TLSSocket; peer: TLSSocket }> {
  const psk = randomBytes(32);
  const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const };
  const server = createTlsServer({ ...options, pskCallback: () => psk });
  const acceptedSocket = Promise.withResolvers<TLSSocket>();
  server.on('secureConnection', socket => acceptedSocket.resolve(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const outsideSocket = connectTls({
    ...options,
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    pskCallback: () => ({ psk, identity: 'test' }),
    checkServerIdentity: () => undefined,
  });
  await once(outsideSocket, 'secureConnect');
  t.after(() => outsideSocket.destroy());
  return { outsideSocket, peer: await acceptedSocket.promise };
}

test('closes the connection through an https proxy when the browser resets its connection', async t => {
  const { ours, browser } = await ends(t, () => {});
  const { outsideSocket, peer } = await tlsOutside(t);
  ours.on('error', () => {});
  join(ours, outsideSocket);
  const closePromise = once(peer.resume(), 'close');
  browser.resetAndDestroy();
  await withTimeout(WAIT_TIMEOUT_MS, 'the end of the connection of the proxy', () => closePromise);
  assert.equal(outsideSocket.destroyed, true);
});
