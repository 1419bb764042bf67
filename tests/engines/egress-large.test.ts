// Large bodies of plain responses, which bypass the HTTP client: the browser must not see a difference.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { pollUntil } from '../../server/kit/wait.ts';
import {
  type Fixture,
  type FixtureOptions,
  listen,
  openFixture,
  policyForPorts,
  RawConnection,
  WAIT_TIMEOUT_MS,
} from './egress-fixture.ts';

const MIB = 1024 * 1024;
const LARGE_BODY = randomBytes(6 * MIB + 12_345);
const HEAD_END = '\r\n\r\n';

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const head = (bytes: number, more = ''): string => `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n${more}\r\n`;

interface OutsideServer {
  readonly fixture: Fixture;
  readonly port: number;
  /** The request lines of each connection, in the order of the connections. */
  readonly requestLines: readonly string[][];
}

/** Starts a server that answers each request with `respond`, which may also use the connection directly. */
async function openOutsideServer(
  t: TestContext,
  respond: (socket: Socket, path: string) => void,
  options: FixtureOptions = {},
): Promise<OutsideServer> {
  const requestLines: string[][] = [];
  const server = createServer(socket => {
    const lines: string[] = [];
    requestLines.push(lines);
    socket.on('error', () => {});
    socket.on('data', data => {
      for (const [, line = '', path = ''] of String(data).matchAll(/^((?:GET|HEAD) (\S+)) HTTP/gm)) {
        lines.push(line);
        respond(socket, path);
      }
    });
  });
  const port = await listen(t, server);
  return { fixture: await openFixture(t, { ports: [port], ...options }), port, requestLines };
}

const sendLarge = (socket: Socket): void => {
  socket.write(head(LARGE_BODY.length));
  socket.write(LARGE_BODY);
};

const requestText = (port: number, path: string, method = 'GET'): string =>
  `${method} http://a.test:${port}${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;

const waitUntilNothingOpen = (fixture: Fixture): Promise<true> =>
  pollUntil(WAIT_TIMEOUT_MS, 'the connection to the server to be closed', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );

/** Waits until this many bytes have arrived after the first head, and returns them. */
async function waitForBody(connection: RawConnection, bytes: number): Promise<Buffer> {
  const text = await connection.waitForText(HEAD_END);
  const bodyStart = text.indexOf(HEAD_END) + HEAD_END.length;
  return (await connection.waitForBytes(bodyStart + bytes)).subarray(bodyStart, bodyStart + bytes);
}

test('the proxy passes a large body unchanged, counts its bytes exactly, and keeps the connection of the browser open', async t => {
  const {
    fixture,
    port,
    requestLines: asked,
  } = await openOutsideServer(t, (socket, path) =>
    path === '/large' ? sendLarge(socket) : socket.write(`${head(2)}ok`),
  );
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/large'));
  assert.equal(sha(await waitForBody(connection, LARGE_BODY.length)), sha(LARGE_BODY));
  await waitUntilNothingOpen(fixture);
  const { bytesDown, connections } = fixture.egress.counters();
  assert.deepEqual([bytesDown, connections], [head(LARGE_BODY.length).length + LARGE_BODY.length, 1]);
  connection.socket.write(requestText(port, '/small'));
  await connection.waitForText(`${HEAD_END}ok`);
  assert.deepEqual(asked, [['GET /large'], ['GET /small']]);
  connection.socket.destroy();
});

test('the proxy passes a large body unchanged when it arrives in chunks of very different sizes', async t => {
  const sizes = [1, 10, 16_000, 70_000, 600_000, 3, 2 * MIB, LARGE_BODY.length];
  const { fixture, port } = await openOutsideServer(t, async socket => {
    const wholeResponse = Buffer.concat([Buffer.from(head(LARGE_BODY.length)), LARGE_BODY]);
    let from = 0;
    for (const size of sizes) {
      if (!socket.write(wholeResponse.subarray(from, from + size)))
        await new Promise(done => socket.once('drain', done));
      await new Promise(done => setImmediate(done));
      from += size;
    }
    socket.write(wholeResponse.subarray(from));
  });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/'));
  assert.equal(sha(await waitForBody(connection, LARGE_BODY.length)), sha(LARGE_BODY));
  connection.socket.destroy();
});

test('the proxy passes large bodies unchanged when at most one of two transfers gets a large read buffer', async t => {
  for (const bigReadsMax of [0, 1]) {
    const { fixture, port } = await openOutsideServer(t, sendLarge, { limits: { bigReadsMax } });
    for (let count = 0; count < 2; count++) {
      const connections = await Promise.all([1, 2].map(() => RawConnection.open(fixture.proxyPort)));
      for (const connection of connections) connection.socket.write(requestText(port, '/'));
      for (const connection of connections)
        assert.equal(sha(await waitForBody(connection, LARGE_BODY.length)), sha(LARGE_BODY));
      for (const connection of connections) connection.socket.destroy();
    }
  }
});

test('the proxy drops bytes that the server sends beyond the declared length', async t => {
  const { fixture, port } = await openOutsideServer(t, (socket, path) => {
    if (path !== '/large') return void socket.write(`${head(2)}ok`);
    sendLarge(socket);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled');
  });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/large'));
  await waitForBody(connection, LARGE_BODY.length);
  connection.socket.write(requestText(port, '/small'));
  await connection.waitForText(`${HEAD_END}ok`);
  assert.ok(!connection.text.includes('smuggled'));
  connection.socket.destroy();
});

for (const [how, breakOff] of [
  ['ends', (socket: Socket) => void socket.end()],
  ['resets', (socket: Socket) => void socket.resetAndDestroy()],
] as const)
  test(`the proxy aborts the browser's connection when the server ${how} the connection in the middle of a body`, async t => {
    const half = LARGE_BODY.subarray(0, LARGE_BODY.length / 2);
    const { fixture, port } = await openOutsideServer(t, socket => {
      socket.write(head(LARGE_BODY.length));
      socket.write(half);
      void pollUntil(WAIT_TIMEOUT_MS, 'half of the body to be forwarded', () =>
        fixture.egress.counters().bytesDown > half.length ? true : undefined,
      ).then(() => breakOff(socket));
    });
    const connection = await RawConnection.open(fixture.proxyPort);
    connection.socket.write(requestText(port, '/'));
    await connection.waitForEnd();
    assert.ok(connection.bytes.length < head(LARGE_BODY.length).length + LARGE_BODY.length);
    await waitUntilNothingOpen(fixture);
  });

test('the proxy forwards the next response after a HEAD response that declares a length but has no body', async t => {
  const { fixture, port } = await openOutsideServer(t, (socket, path) =>
    socket.write(path === '/last' ? `${head(2)}ok` : head(LARGE_BODY.length)),
  );
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/', 'HEAD'));
  await connection.waitForText(HEAD_END);
  connection.socket.write(requestText(port, '/last'));
  await connection.waitForText(`${HEAD_END}ok`);
  connection.socket.destroy();
});

test('the proxy returns the responses to pipelined requests in order, even if a later request is answered first', async t => {
  // The proxy sends each pipelined request on its own connection, so the requests reach the server in no particular
  // order.
  const largeSent = Promise.withResolvers<void>();
  const { fixture, port } = await openOutsideServer(t, (socket, path) => {
    if (path === '/last') return void socket.write(`${head(4)}last`);
    if (path === '/first') return void largeSent.promise.then(() => socket.write(`${head(5)}first`));
    sendLarge(socket);
    largeSent.resolve();
  });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/first') + requestText(port, '/large') + requestText(port, '/last'));
  await connection.waitForBytes(LARGE_BODY.length);
  const all = await connection.waitForText(`${HEAD_END}last`);
  const firstEnd = all.indexOf(`${HEAD_END}first`) + HEAD_END.length + 'first'.length;
  const bodyStart = all.indexOf(HEAD_END, firstEnd) + HEAD_END.length;
  assert.equal(sha(connection.bytes.subarray(bodyStart, bodyStart + LARGE_BODY.length)), sha(LARGE_BODY));
  connection.socket.destroy();
});

const chunk = Buffer.alloc(MIB);

function pourEndlessly(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  socket.write(head(Number.MAX_SAFE_INTEGER));
  more();
}

test('the proxy ends a transfer when a new policy forbids it', async t => {
  const { fixture, port } = await openOutsideServer(t, pourEndlessly);
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/'));
  await connection.waitForBytes(MIB);
  fixture.egress.replacePolicy(policyForPorts([]));
  await connection.waitForEnd();
  await waitUntilNothingOpen(fixture);
});

test('the proxy closes the connection to the server when the browser disconnects', async t => {
  const { fixture, port } = await openOutsideServer(t, pourEndlessly);
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(requestText(port, '/'));
  await connection.waitForBytes(MIB);
  connection.socket.destroy();
  await waitUntilNothingOpen(fixture);
});

/**
 * An upper bound for the kernel's buffers at both ends of the connection. Our own buffers hold at most one large chunk.
 */
const KERNEL_BYTES_MAX = 40 * MIB;

for (const transferKind of ['a plain response', 'a tunnel'])
  test(`the proxy applies backpressure to the sender of ${transferKind} while the reader is paused, and continues afterwards`, async t => {
    const { fixture, port } = await openOutsideServer(t, pourEndlessly);
    const isPlainResponse = transferKind === 'a plain response';
    const connection = isPlainResponse
      ? await RawConnection.open(fixture.proxyPort)
      : await RawConnection.tunnel(fixture, `a.test:${port}`);
    connection.socket.write(isPlainResponse ? requestText(port, '/') : 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
    // Waits until the transfer is on the direct path before the socket is paused.
    await connection.waitForBytes(8 * MIB);
    connection.socket.pause();
    const bytesBefore = process.memoryUsage().arrayBuffers;
    let lastBytes = -1;
    const stoppedAtBytes = await pollUntil(
      WAIT_TIMEOUT_MS,
      'the transfer to stop',
      () => {
        const now = fixture.egress.counters().bytesDown;
        const hasStopped = now === lastBytes;
        lastBytes = now;
        return hasStopped ? now : undefined;
      },
      150,
    );
    const acceptedBytes = stoppedAtBytes - connection.socket.bytesRead;
    assert.ok(acceptedBytes < KERNEL_BYTES_MAX, `${acceptedBytes} bytes were accepted`);
    assert.ok(process.memoryUsage().arrayBuffers - bytesBefore < KERNEL_BYTES_MAX);
    connection.socket.resume();
    await connection.waitForBytes(stoppedAtBytes + MIB);
    connection.socket.destroy();
    await waitUntilNothingOpen(fixture);
  });
