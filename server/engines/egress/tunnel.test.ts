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

const WAIT_MS = 30_000;

interface Ends {
  readonly outside: OutsideSocket;
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
  const accepted = Promise.withResolvers<Socket>();
  const [outsidePort, browserPort] = await Promise.all([port(runPeer), port(accepted.resolve)]);
  const outside = new OutsideSocket(new BigReads(4));
  const browser = connect({ port: browserPort, host: '127.0.0.1', allowHalfOpen: true });
  outside.connect(outsidePort, '127.0.0.1');
  await Promise.all([once(outside, 'connect'), once(browser, 'connect')]);
  t.after(() => [outside, browser].map(socket => socket.destroy()));
  return { outside, ours: await accepted.promise, browser };
}

async function received(browser: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  browser.on('data', part => parts.push(part));
  await withTimeout(WAIT_MS, 'the end of the data at the browser', () => once(browser, 'end'));
  return Buffer.concat(parts);
}

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

test('delivers all data that arrived before the join, in order', async t => {
  const bytes = randomBytes(1_000_000);
  const { outside, ours, browser } = await ends(t, socket => socket.end(bytes));
  await pollUntil(WAIT_MS, 'the first bytes', () => (outside.bytesRead > 0 ? true : undefined));
  const before = outside.bytesRead;
  await new Promise(done => setImmediate(done));
  assert.equal(outside.bytesRead, before, 'no more is read than fits into the buffer');
  join(ours, outside);
  assert.equal(sha(await received(browser)), sha(bytes));
});

test('closes the tunnel if the remote side closed its connection before the join', async t => {
  const { outside, ours, browser } = await ends(t, socket => socket.end());
  await pollUntil(WAIT_MS, 'the end', () => (outside.readableEnded ? true : undefined));
  join(ours, outside);
  assert.equal((await received(browser)).length, 0);
});

test('delivers writes of every size in order and unchanged', async t => {
  const sizes = [1, 2, 100, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 300_000, 7, 1_000_000, 1];
  const parts = sizes.map(size => randomBytes(size));
  const { outside, ours, browser } = await ends(t, async socket => {
    for (const part of parts) if (!socket.write(part)) await once(socket, 'drain');
    socket.end();
  });
  join(ours, outside);
  assert.equal(sha(await received(browser)), sha(Buffer.concat(parts)));
});

test('delivers the same bytes to a reader that pauses and resumes', async t => {
  const bytes = randomBytes(24_000_000);
  const { outside, ours, browser } = await ends(t, socket => socket.end(bytes));
  join(ours, outside);
  let seen = 0;
  browser.on('data', part => {
    seen += part.length;
    if (seen < 1_000_000) return;
    seen = 0;
    browser.pause();
    setImmediate(() => setImmediate(() => browser.resume()));
  });
  assert.equal(sha(await received(browser)), sha(bytes));
});

test('does not mix the bytes of concurrent tunnels', async t => {
  const all = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const bytes = Buffer.alloc(2_000_000, index + 1);
      const { outside, ours, browser } = await ends(t, socket => socket.end(bytes));
      join(ours, outside);
      const got = await received(browser);
      return got.equals(bytes);
    }),
  );
  assert.deepEqual(all, new Array(12).fill(true));
});

/** A TLS connection with a pre-shared key, so that no certificate is needed. */
async function tlsOutside(t: TestContext): Promise<{ outside: TLSSocket; peer: TLSSocket }> {
  const psk = randomBytes(32);
  const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const };
  const server = createTlsServer({ ...options, pskCallback: () => psk });
  const accepted = Promise.withResolvers<TLSSocket>();
  server.on('secureConnection', socket => accepted.resolve(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const outside = connectTls({
    ...options,
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    pskCallback: () => ({ psk, identity: 'test' }),
    checkServerIdentity: () => undefined,
  });
  await once(outside, 'secureConnect');
  t.after(() => outside.destroy());
  return { outside, peer: await accepted.promise };
}

test('closes the connection through an https proxy when the browser resets its connection', async t => {
  const { ours, browser } = await ends(t, () => {});
  const { outside, peer } = await tlsOutside(t);
  ours.on('error', () => {});
  join(ours, outside);
  const closed = once(peer.resume(), 'close');
  browser.resetAndDestroy();
  await withTimeout(WAIT_MS, 'the end of the connection of the proxy', () => closed);
  assert.equal(outside.destroyed, true);
});
