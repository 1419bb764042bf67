// The egress proxy under failures: invalid bytes, resets, floods and silence. None of these may affect the process, and
// afterwards the proxy must still work.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { EGRESS_LIMITS } from '../../server/engines/egress/limits.ts';
import { createResolver } from '../../server/engines/egress/resolve.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { pollUntil, withTimeout } from '../../server/kit/wait.ts';
import { ManualClock } from '../harness/hand-clock.ts';
import { openNameServer, PATIENT_TIMEOUTS } from './egress-dns.ts';
import { curl, type Fixture, listen, openFixture, RawConnection, WAIT_TIMEOUT_MS } from './egress-fixture.ts';

const echo = (t: TestContext): Promise<number> =>
  listen(
    t,
    createServer({ allowHalfOpen: true }, socket => socket.on('error', () => {}).pipe(socket)),
  );

async function assertStillWorks(fixture: Fixture, port: number): Promise<void> {
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  connection.socket.write('still here');
  await connection.waitForText('still here');
  connection.socket.destroy();
  await waitUntilNothingOpen(fixture);
}

const waitUntilNothingOpen = (fixture: Fixture): Promise<true> =>
  pollUntil(WAIT_TIMEOUT_MS, 'all connections to servers to be closed', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );

const MALFORMED_REQUESTS: ReadonlyArray<readonly [string, string, RegExp]> = [
  ['not HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', /^HTTP\/1.1 400 /],
  ['nonsense', 'hello there\r\n\r\n', /^HTTP\/1.1 400 /],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1.1 (400|505) /],
  ['no Host', 'GET http://a.test/ HTTP/1.1\r\n\r\n', /^HTTP\/1.1 400 /],
  ['a path alone', 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n', /^HTTP\/1.1 400 [\s\S]*x-berth-failed: bad_request/],
  ['https in the clear', 'GET https://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1.1 400 [\s\S]*bad_request/],
  ['a password in the URL', 'GET http://u:p@a.test/ HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1.1 400 [\s\S]*bad_request/],
  ['CONNECT without a port', 'CONNECT b.test HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1.1 400 [\s\S]*bad_request/],
  ['CONNECT to a URL', 'CONNECT http://b.test:80/ HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1.1 400 /],
  ['a bare line feed in a header', 'GET http://a.test/ HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n', /^HTTP\/1.1 400 /],
  [
    'a space before the colon',
    'GET http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello',
    /^HTTP\/1.1 400 /,
  ],
  ['a folded header', 'GET http://a.test/ HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n', /^HTTP\/1.1 400 /],
  ['a null in a header', 'GET http://a.test/ HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', /^HTTP\/1.1 400 /],
  [
    'a giant head',
    `GET http://a.test/ HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(EGRESS_LIMITS.headBytesMax)}\r\n\r\n`,
    /^HTTP\/1.1 431 /,
  ],
  [
    'a giant target',
    `GET http://a.test/${'x'.repeat(EGRESS_LIMITS.headBytesMax)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    /^HTTP\/1.1 431 /,
  ],
  ['an unknown expectation', 'GET http://a.test/ HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n', /^HTTP\/1.1 417 /],
];

test('the proxy responds to malformed requests with an error and does not forward them', async t => {
  let hits = 0;
  const port = await listen(
    t,
    createHttpServer((_request, response) => {
      hits += 1;
      response.end();
    }),
  );
  const fixture = await openFixture(t, { ports: [port] });
  for (const [name, bytes, expected] of MALFORMED_REQUESTS) {
    const connection = await RawConnection.open(fixture.proxyPort);
    connection.socket.write(bytes.replaceAll('a.test', `a.test:${port}`), 'latin1');
    await connection.waitForText('\r\n\r\n');
    assert.match(connection.text, expected, name);
    connection.socket.destroy();
  }
  assert.equal(hits, 0);
  await waitUntilNothingOpen(fixture);
});

const SMUGGLED_REQUEST = 'GET http://a.test/smuggled HTTP/1.1\r\nHost: a\r\n\r\n';

test('the proxy does not forward a request that is hidden in the body of another', async t => {
  const seen: string[] = [];
  const server = createHttpServer({ maxHeaderSize: EGRESS_LIMITS.headBytesMax }, async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    seen.push(`${request.method} ${request.url} ${Buffer.concat(parts).length}`);
    response.end('ok');
  });
  server.maxHeadersCount = 0;
  const port = await listen(t, server);
  const fixture = await openFixture(t, { ports: [port] });
  const heads = [
    'Content-Length: 0\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nContent-Length: 5',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding:\x0bchunked',
    'Content-Length: 1\r\nContent-Length: 60',
    'Content-Length: +5',
    'Content-Length: 0x10',
    'Content-Length: -1',
  ];
  for (const head of heads) {
    const connection = await RawConnection.open(fixture.proxyPort);
    connection.socket.write(
      `POST http://a.test:${port}/outer HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n0\r\n\r\n${SMUGGLED_REQUEST}`,
      'latin1',
    );
    await connection.waitForText('\r\n\r\n');
    assert.match(connection.text, /^HTTP\/1.1 400 /, head);
    await connection.waitForEnd();
    connection.socket.destroy();
  }
  assert.deepEqual(seen, []);
  const many = Array.from({ length: 3000 }, (_, index) => `X-${index}: 1`).join('\r\n');
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(
    `GET http://a.test:${port}/many HTTP/1.1\r\nHost: a\r\n${many}\r\nContent-Length: ${SMUGGLED_REQUEST.length}\r\n\r\n${SMUGGLED_REQUEST}`,
  );
  await connection.waitForText('ok');
  connection.socket.destroy();
  assert.deepEqual(
    seen,
    [`GET /many ${SMUGGLED_REQUEST.length}`],
    'a Content-Length after thousands of headers is respected',
  );
});

/** Matches the response to a plain request that fails: a head with the kind of failure. The connection then ends. */
const failurePattern = (kind: string): RegExp => new RegExp(`^HTTP/1\\.1 100 Continue\r\nx-berth-failed: ${kind}\r\n`);

const BAD_RESPONSES: ReadonlyArray<readonly [string, string]> = [
  ['not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\nX: '],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  [
    'an upgrade that was not requested',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  ],
  [
    'a response that requires a proxy password',
    'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
  ],
  ['a giant head', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(EGRESS_LIMITS.headBytesMax)}\r\n\r\n`],
  ['a status below 100', 'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n'],
];

test('the proxy reports an invalid response as a failure, for requests with and without a body', async t => {
  for (const [name, bytes] of BAD_RESPONSES) {
    const port = await listen(
      t,
      createServer(socket => socket.on('error', () => {}).once('data', () => socket.end(bytes))),
    );
    const fixture = await openFixture(t, { ports: [port] });
    for (const how of [[], ['-d', 'body']]) {
      const { code, out } = await curl(fixture, '-i', ...how, `http://a.test:${port}/`);
      assert.notEqual(code, 0, name);
      assert.match(out.toString(), failurePattern('bad_answer'), name);
    }
    await waitUntilNothingOpen(fixture);
  }
});

test("the proxy aborts the browser's connection when a response is truncated", async t => {
  const port = await listen(
    t,
    createServer(socket => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'));
    }),
  );
  const chunkedPort = await listen(
    t,
    createServer(socket => {
      socket.once('data', () =>
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n', () =>
          socket.resetAndDestroy(),
        ),
      );
    }),
  );
  const fixture = await openFixture(t, { ports: [port, chunkedPort] });
  const shortResult = await curl(fixture, `http://a.test:${port}/`);
  assert.deepEqual([shortResult.code, shortResult.out.toString()], [18, 'half']);
  const cutResult = await curl(fixture, `http://a.test:${chunkedPort}/`);
  assert.ok([18, 56].includes(cutResult.code), `curl ended with ${cutResult.code}`);
  await waitUntilNothingOpen(fixture);
});

test('the proxy distinguishes a refused connection from an unknown name, and shows no address or system error', async t => {
  const nameServer = await openNameServer(() => ({ addresses: [], isUnknown: true }));
  t.after(() => nameServer[Symbol.asyncDispose]());
  const hosts = new Map([['a.test', '127.0.0.1']]);
  const resolve = createResolver({
    hosts,
    clock: systemClock,
    servers: [nameServer.address],
    timeouts: PATIENT_TIMEOUTS,
  });
  const fixture = await openFixture(t, { ports: [1], resolve });
  for (const [host, kind] of [
    ['a.test', 'connect_failed'],
    ['unknown.test', 'name_not_resolved'],
  ] as const) {
    const plainResult = await curl(fixture, '-i', `http://${host}:1/`);
    assert.match(plainResult.out.toString(), failurePattern(kind));
    const tunnelResult = await curl(fixture, '-v', `https://${host}:1/`);
    assert.match(tunnelResult.err, new RegExp(` 502 [\\s\\S]*x-berth-failed: ${kind}\r\n`));
    const shownText = plainResult.out.toString() + tunnelResult.err.replace(/^\* .*$/gm, '');
    assert.doesNotMatch(shownText, /ECONNREFUSED|ENOTFOUND|127\.0\.0\.1:1\b/);
  }
  assert.ok(nameServer.queryCount('unknown.test') > 0);
});

test('a request fails within its time limit when the name server does not respond', async t => {
  const fixture = await openFixture(t, { resolve: () => new Promise(() => {}), limits: { resolveMs: 50 } });
  const { out } = await curl(fixture, '-i', 'http://a.test/');
  assert.match(out.toString(), failurePattern('name_timed_out'));
});

test('the proxy reports a failure when the resolver throws or returns invalid data', async t => {
  for (const answers of [[], ['nonsense'], ['10.0.0.1', 'nonsense'], ['fe80::1%eth0']]) {
    const fixture = await openFixture(t, { resolve: async () => answers });
    assert.match((await curl(fixture, '-i', 'http://a.test/')).out.toString(), failurePattern('name_not_resolved'));
  }
  const fixture = await openFixture(t, {
    resolve: () => {
      throw new Error('broken');
    },
  });
  assert.match((await curl(fixture, '-i', 'http://a.test/')).out.toString(), failurePattern('bad_answer'));
  assert.match((await curl(fixture, '-iv', 'https://a.test/')).err, / 502 /);
});

test('the proxy forwards a connection reset to the other side', async t => {
  let outsideSocket: Socket | undefined;
  const errors: string[] = [];
  const port = await listen(
    t,
    createServer(socket => {
      outsideSocket = socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
      socket.resume();
    }),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  await pollUntil(WAIT_TIMEOUT_MS, 'the connection outside', () => outsideSocket);
  outsideSocket?.resetAndDestroy();
  await connection.waitForClose();
  assert.equal(connection.error, 'ECONNRESET');
  outsideSocket = undefined;
  const otherConnection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  await pollUntil(WAIT_TIMEOUT_MS, 'the connection outside', () => outsideSocket);
  otherConnection.socket.resetAndDestroy();
  await pollUntil(WAIT_TIMEOUT_MS, 'the reset to reach the server', () => (errors.length > 0 ? true : undefined));
  assert.deepEqual(errors, ['ECONNRESET']);
  await waitUntilNothingOpen(fixture);
});

test('the proxy closes both sides of a tunnel when a reset follows a half-close', async t => {
  const endingPort = await listen(
    t,
    createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => {}).end('bye');
      // The kernel sends the reset, because bytes arrive at a closed socket.
      socket.once('data', () => socket.destroy());
    }),
  );
  const port = await echo(t);
  const fixture = await openFixture(t, { ports: [endingPort, port], limits: { connectionsMax: 1 } });
  const serverFirstConnection = await RawConnection.tunnel(fixture, `a.test:${endingPort}`);
  await serverFirstConnection.waitForEnd();
  // After the server has ended its side of the connection, a reset is detected only by a write.
  const writeTimer = setInterval(() => serverFirstConnection.socket.write('x'), 5);
  await serverFirstConnection.waitForClose().finally(() => clearInterval(writeTimer));
  await assertStillWorks(fixture, port);
  const browserFirstConnection = await RawConnection.open(fixture.proxyPort);
  browserFirstConnection.socket.write(`CONNECT a.test:${endingPort} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await browserFirstConnection.waitForText('bye');
  browserFirstConnection.socket.resetAndDestroy();
  await waitUntilNothingOpen(fixture);
  await assertStillWorks(fixture, port);
});

test('the proxy releases all connections after hundreds of aborted requests', async t => {
  const port = await echo(t);
  const fixture = await openFixture(t, { ports: [port] });
  const head = `CONNECT a.test:${port} HTTP/1.1\r\nHost: a\r\n\r\n`;
  const plainRequest = `POST http://a.test:${port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`;
  const disruptions: ReadonlyArray<(socket: Socket) => void> = [
    socket => socket.resetAndDestroy(),
    socket => socket.write(head.slice(0, 20), () => socket.resetAndDestroy()),
    socket => socket.write(head, () => socket.resetAndDestroy()),
    socket =>
      socket.once('data', () => socket.write(Buffer.alloc(300_000), () => socket.resetAndDestroy())).write(head),
    socket => socket.once('data', () => socket.destroy()).write(head + 'x'.repeat(50_000)),
    socket => socket.write(plainRequest, () => socket.resetAndDestroy()),
    socket => socket.write(plainRequest + 'x'.repeat(99_999), () => socket.end()),
    socket => socket.end(plainRequest),
    socket => socket.write('GET http://10.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n', () => socket.resetAndDestroy()),
  ];
  for (let round = 0; round < 40; round += 1) {
    const connections = await Promise.all(disruptions.map(() => RawConnection.open(fixture.proxyPort)));
    for (const [index, connection] of connections.entries()) disruptions[index]?.(connection.socket);
  }
  await waitUntilNothingOpen(fixture);
  await assertStillWorks(fixture, port);
});

test('the proxy closes connections beyond the limit at once, and accepts new ones afterwards', async t => {
  const port = await echo(t);
  const fixture = await openFixture(t, { ports: [port], limits: { connectionsMax: 3 } });
  const connections = [];
  for (let count = 0; count < 3; count += 1) connections.push(await RawConnection.tunnel(fixture, `a.test:${port}`));
  for (let count = 0; count < 20; count += 1) {
    const refusedConnection = await RawConnection.open(fixture.proxyPort);
    await refusedConnection.waitForEnd();
    refusedConnection.socket.destroy();
  }
  assert.deepEqual(fixture.egress.counters().refusals, { too_many_connections: 20 });
  for (const connection of connections) connection.socket.destroy();
  await waitUntilNothingOpen(fixture);
  await assertStillWorks(fixture, port);
});

test('the proxy ends a connection with too many pipelined requests', async t => {
  let hits = 0;
  const port = await listen(
    t,
    createHttpServer(() => (hits += 1)),
  );
  const fixture = await openFixture(t, { ports: [port], limits: { requestsPerConnectionMax: 4 } });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`GET http://a.test:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(1000));
  await connection.waitForEnd();
  await waitUntilNothingOpen(fixture);
  assert.ok(hits <= 4, `${hits} requests reached the server`);
  const mixedConnection = await RawConnection.open(fixture.proxyPort);
  mixedConnection.socket.write(
    `GET http://a.test:${port}/ HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a.test:${port} HTTP/1.1\r\nHost: a\r\n\r\n`,
  );
  await mixedConnection.waitForEnd();
  assert.equal(mixedConnection.text, '');
});

test('a request head that arrives slowly times out, and so does a connection that never sends a request', async t => {
  // The limit that is not under test is long, so that a slow machine does not reach it first.
  const dripFixture = await openFixture(t, { limits: { headMs: 100, sweepMs: 50 } });
  const slowConnection = await RawConnection.open(dripFixture.proxyPort);
  slowConnection.socket.write('GET http://a.test/ HTTP/1.1\r\n');
  const dripTimer = setInterval(() => slowConnection.socket.write('X: y\r\n'), 20);
  t.after(() => clearInterval(dripTimer));
  assert.match(await slowConnection.waitForText('\r\n\r\n'), /^HTTP\/1.1 408 /);
  await slowConnection.waitForEnd();
  const unusedFixture = await openFixture(t, { limits: { sweepMs: 50, unusedMs: 200 } });
  const silentConnection = await RawConnection.open(unusedFixture.proxyPort);
  await silentConnection.waitForEnd();
});

test('the proxy ends an idle connection and keeps an active one', async t => {
  const port = await echo(t);
  const clock = new ManualClock();
  const fixture = await openFixture(t, { ports: [port], clock });
  const { idleMs, sweepMs } = EGRESS_LIMITS;
  const idleConnection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  const busyConnection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  await clock.advance(idleMs - 2 * sweepMs, sweepMs);
  busyConnection.socket.write('tick');
  await busyConnection.waitForText('tick');
  assert.equal(fixture.egress.counters().connectionsOpen, 2);
  await clock.advance(3 * sweepMs, sweepMs);
  await idleConnection.waitForEnd();
  await pollUntil(WAIT_TIMEOUT_MS, 'its connection to the server to close', () =>
    fixture.egress.counters().connectionsOpen === 1 ? true : undefined,
  );
  busyConnection.socket.write(' tock');
  await busyConnection.waitForText('tick tock');
});

test('the proxy ends a half-closed tunnel earlier than an open one', async t => {
  const endReceived = Promise.withResolvers<void>();
  const port = await listen(
    t,
    createServer({ allowHalfOpen: true }, socket => socket.once('end', endReceived.resolve).resume()),
  );
  const clock = new ManualClock();
  const fixture = await openFixture(t, { ports: [port], clock });
  const { halfClosedIdleMs, sweepMs } = EGRESS_LIMITS;
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  connection.socket.end();
  await withTimeout(WAIT_TIMEOUT_MS, 'the end to reach the server', () => endReceived.promise);
  await clock.advance(sweepMs, sweepMs);
  assert.equal(fixture.egress.counters().connectionsOpen, 1);
  await clock.advance(halfClosedIdleMs + 2 * sweepMs, sweepMs);
  await connection.waitForEnd();
  await waitUntilNothingOpen(fixture);
});

test('a response may take longer than the limits for request heads and unused connections', async t => {
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      if (request.url === '/late') setTimeout(() => response.end('late'), 1_000);
    }),
  );
  const fixture = await openFixture(t, { ports: [port], limits: { unusedMs: 500, headMs: 500, sweepMs: 20 } });
  // The test sends the request as soon as the socket is connected, so the connection never counts as unused.
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`GET http://a.test:${port}/late HTTP/1.1\r\nHost: a\r\n\r\n`);
  await connection.waitForText('\r\n\r\nlate');
  connection.socket.destroy();
});

test('the proxy releases all connections when the browser disconnects while a connection is being opened', async t => {
  const resolveCalled = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<readonly string[]>();
  const port = await echo(t);
  const resolve = (): Promise<readonly string[]> => {
    resolveCalled.resolve();
    return answer.promise;
  };
  const fixture = await openFixture(t, { ports: [port], resolve });
  const plainConnection = await RawConnection.open(fixture.proxyPort);
  const tunnelConnection = await RawConnection.open(fixture.proxyPort);
  tunnelConnection.socket.write(`CONNECT a.test:${port} HTTP/1.1\r\nHost: a\r\n\r\n`);
  plainConnection.socket.write(`GET http://a.test:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await resolveCalled.promise;
  for (const { socket } of [plainConnection, tunnelConnection]) {
    socket.resetAndDestroy();
    await once(socket, 'close');
  }
  answer.resolve(['127.0.0.1']);
  await waitUntilNothingOpen(fixture);
  await assertStillWorks(fixture, port);
});

test('requests in progress are aborted promptly when the proxy is closed', async t => {
  const port = await listen(
    t,
    createHttpServer(() => {}),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`GET http://a.test:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await pollUntil(WAIT_TIMEOUT_MS, 'the request to reach the server', () =>
    fixture.egress.counters().connectionsOpen === 1 ? true : undefined,
  );
  await withTimeout(WAIT_TIMEOUT_MS, 'the proxy to close', () => fixture.egress.close());
  await connection.waitForEnd();
  await waitUntilNothingOpen(fixture);
});

test('the proxy closes only the affected connection when a listener throws', async t => {
  const fail = (): never => {
    throw new Error('broken');
  };
  const fixture = await openFixture(t, {
    listener: { refused: fail },
    self: { hostname: 'own.test', port: 80, accept: fail },
  });
  for (const how of [[], ['--proxytunnel']]) {
    const { code, err } = await curl(fixture, '-v', ...how, 'http://10.0.0.1/');
    assert.match(err, /x-berth-refused: private/, `curl ended with ${code}`);
  }
  const connection = await RawConnection.tunnel(fixture, 'own.test:80');
  await connection.waitForEnd();
  assert.deepEqual(fixture.egress.counters().refusals, { private: 2 });
});
