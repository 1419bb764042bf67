// The egress proxy as a browser uses it: traffic passes unchanged and is counted. egress-trouble.test.ts tests
// failures.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import {
  createServer as createHttpServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import type { Refusal } from '../../server/engines/egress/egress.ts';
import { pollUntil } from '../../server/kit/wait.ts';
import { curl, listen, openFixture, policyForPorts, RawConnection, WAIT_TIMEOUT_MS } from './egress-fixture.ts';

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const startOrigin = (t: TestContext, handle: RequestListener): Promise<number> => listen(t, createHttpServer(handle));

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

const tls = { cert: '', key: '', certFile: '' };

before(() => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-egress-'));
  try {
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    const subjectAltName = 'subjectAltName=DNS:a.test,DNS:browsers.test';
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=test',
        '-addext',
        subjectAltName,
        '-keyout',
        key,
        '-out',
        cert,
      ],
      { stdio: 'ignore' },
    );
    tls.cert = readFileSync(cert, 'utf8');
    tls.key = readFileSync(key, 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the proxy forwards a plain request unchanged, without proxy headers', async t => {
  const port = await startOrigin(t, (request, response) =>
    response.end(JSON.stringify([request.url, request.rawHeaders])),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const { out } = await curl(
    fixture,
    '-H',
    'X-Odd-CASE: ü',
    '-H',
    'Proxy-Authorization: Basic eA==',
    '--path-as-is',
    `http://a.test:${port}/x/../y?z=%7C&|`,
  );
  const [url, headers] = JSON.parse(out.toString());
  assert.equal(url, '/x/../y?z=%7C&|');
  assert.deepEqual(headers.slice(0, 4), ['Host', `a.test:${port}`, 'Connection', 'keep-alive']);
  assert.deepEqual(headers.filter((_: string, index: number) => index % 2 === 0).slice(2), [
    'User-Agent',
    'Accept',
    'X-Odd-CASE',
  ]);
});

test('the proxy passes header bytes above 127 unchanged, with and without bodies', async t => {
  const port = await startOrigin(t, async (request, response) => {
    await readBody(request);
    response
      .writeHead(200, ['X-Back', String(request.headers['x-there'])])
      .end(request.method === 'HEAD' ? undefined : 'ok');
  });
  const fixture = await openFixture(t, { ports: [port] });
  for (const how of [[], ['-d', 'x'], ['-I'], ['-H', 'Transfer-Encoding: chunked', '-d', 'x']]) {
    const { out } = await curl(fixture, '-i', ...how, '-H', 'X-There: Grüße 東京', `http://a.test:${port}/`);
    assert.match(out.toString(), /X-Back: Grüße 東京\r\n/, how.join(' '));
  }
});

test('the proxy returns a response unchanged: status, reason phrase, repeated headers, no added Date', async t => {
  const port = await listen(
    t,
    createServer(socket => {
      socket.once('data', () =>
        socket.end(
          'HTTP/1.1 299 Rather Fine\r\nSet-Cookie: a=1\r\nset-COOKIE: b=2\r\nX-Latin: \xe9\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
          'latin1',
        ),
      );
    }),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`GET http://a.test:${port}/ HTTP/1.1\r\nHost: other.test\r\n\r\n`);
  const text = await connection.waitForText('\r\n\r\nok');
  const [status, ...lines] = text.split('\r\n');
  assert.equal(status, 'HTTP/1.1 299 Rather Fine');
  assert.deepEqual(lines.slice(0, 4), ['Set-Cookie: a=1', 'set-COOKIE: b=2', 'X-Latin: \xe9', 'Content-Length: 2']);
  assert.doesNotMatch(text, /^(date|via|x-forwarded|server):/im);
  connection.socket.destroy();
});

test('the proxy forwards a chunked response with the same chunks, and no body for HEAD', async t => {
  const chunks = '4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n';
  const port = await listen(
    t,
    createServer(socket => {
      socket.on('data', request => {
        const responseHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
        socket.write(String(request).startsWith('HEAD') ? responseHead : `${responseHead}${chunks}`);
      });
    }),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  for (const time of [1, 2]) {
    connection.socket.write(`GET http://a.test:${port}/${time} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await pollUntil(
      WAIT_TIMEOUT_MS,
      'the whole response',
      () => connection.text.split('pedia\r\n0\r\n\r\n').length === time + 1 || undefined,
    );
    assert.ok(connection.text.endsWith(`\r\n\r\n${chunks}`), connection.text);
  }
  assert.match(connection.text, /^transfer-encoding: chunked\r$/im);
  assert.doesNotMatch(connection.text, /content-length/i);
  connection.socket.destroy();
  const { code, out } = await curl(fixture, '-I', `http://a.test:${port}/`);
  assert.deepEqual([code, out.toString().includes('Wiki')], [0, false]);
});

test('the proxy passes every method with and without a body, with a Content-Length or chunked', async t => {
  const port = await startOrigin(t, async (request, response) => {
    const { method, headers } = request;
    response.end(
      `${method} ${(await readBody(request)).toString()} ${headers['content-length'] ?? '-'} ${headers['transfer-encoding'] ?? '-'}`,
    );
  });
  const fixture = await openFixture(t, { ports: [port] });
  const url = `http://a.test:${port}/`;
  const text = async (...args: string[]): Promise<string> => (await curl(fixture, ...args, url)).out.toString();
  for (const method of ['GET', 'DELETE', 'OPTIONS', 'TRACE']) assert.equal(await text('-X', method), `${method}  - -`);
  for (const method of ['POST', 'PUT', 'PATCH', 'PROPFIND']) assert.equal(await text('-X', method), `${method}  0 -`);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'QUERY'])
    assert.equal(await text('-X', method, '-d', 'abc'), `${method} abc 3 -`, method);
  for (const method of ['POST', 'GET', 'DELETE'])
    assert.equal(
      await text('-X', method, '-H', 'Transfer-Encoding: chunked', '-d', 'abc'),
      `${method} abc - chunked`,
      method,
    );
});

test('the proxy forwards the headers of responses to HEAD, and of 204 and 304 responses, without waiting for a body', async t => {
  const port = await startOrigin(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, status === 204 ? { 'x-seen': 'yes' } : { 'content-length': '1234', 'x-seen': 'yes' });
    response.end();
  });
  const fixture = await openFixture(t, { ports: [port] });
  const head = await curl(fixture, '-I', `http://a.test:${port}/200`, `http://a.test:${port}/200`);
  assert.equal(head.code, 0);
  assert.equal(head.out.toString().match(/Content-Length: 1234/gi)?.length, 2);
  const connection = await RawConnection.open(fixture.proxyPort);
  for (const status of [204, 304])
    connection.socket.write(`GET http://a.test:${port}/${status} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const text = await connection.waitForText('HTTP/1.1 304');
  assert.match(text, /^HTTP\/1.1 204 [\s\S]*?\r\n\r\nHTTP\/1.1 304 /);
  connection.socket.destroy();
});

test('the proxy forwards 100-continue from the server instead of sending its own', async t => {
  const server = createHttpServer(async (request, response) => response.end(await readBody(request)));
  let continueCount = 0;
  server.on('checkContinue', async (request, response) => {
    continueCount += 1;
    if (request.url === '/no') {
      response.writeHead(417, { 'content-length': 0 }).end();
      return;
    }
    response.writeContinue();
    response.end(await readBody(request));
  });
  const port = await listen(t, server);
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  const head = (path: string): string =>
    `POST http://a.test:${port}${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n`;
  connection.socket.write(head('/yes'));
  assert.match(await connection.waitForText('\r\n\r\n'), /^HTTP\/1.1 100 /);
  connection.socket.write('abc');
  await connection.waitForText('\r\n\r\nabc');
  const otherConnection = await RawConnection.open(fixture.proxyPort);
  otherConnection.socket.write(head('/no'));
  assert.match(await otherConnection.waitForText('\r\n\r\n'), /^HTTP\/1.1 417 /);
  await otherConnection.waitForEnd();
  assert.equal(continueCount, 2);
});

test('the proxy passes large bodies unchanged in both directions and counts the bytes of the connections to the server', async t => {
  const sent = randomBytes(32 * 1024 * 1024);
  const folder = mkdtempSync(join(tmpdir(), 'berth-egress-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'body'), sent);
  const seen = { up: 0, down: 0 };
  const server = createHttpServer(async (request, response) => response.end(await readBody(request)));
  server.on('connection', (socket: Socket) =>
    socket.once('close', () => {
      seen.up += socket.bytesRead;
      seen.down += socket.bytesWritten;
    }),
  );
  const port = await listen(t, server);
  const fixture = await openFixture(t, { ports: [port] });
  for (const how of [[], ['--proxytunnel'], ['-H', 'Transfer-Encoding: chunked']]) {
    const { code, out } = await curl(fixture, ...how, '-T', join(folder, 'body'), `http://a.test:${port}/`);
    assert.equal(code, 0);
    assert.equal(sha(out), sha(sent));
  }
  await pollUntil(WAIT_TIMEOUT_MS, 'all connections outside to close', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );
  const { bytesUp, bytesDown, connections } = fixture.egress.counters();
  await pollUntil(WAIT_TIMEOUT_MS, 'the server to have received all bytes', () =>
    seen.up >= bytesUp ? true : undefined,
  );
  assert.deepEqual({ up: bytesUp, down: bytesDown, connections }, { ...seen, connections: 3 });
  assert.ok(bytesUp > 3 * sent.length && bytesDown > 3 * sent.length);
});

test('the proxy updates the byte counters while a tunnel is open, and counts the bytes of the tunnel exactly', async t => {
  const port = await listen(
    t,
    createServer(socket => socket.pipe(socket)),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  const sent = randomBytes(3_000_001);
  connection.socket.write(sent);
  assert.equal(sha(await connection.waitForBytes(sent.length)), sha(sent));
  assert.deepEqual(fixture.egress.counters(), {
    bytesUp: sent.length,
    bytesDown: sent.length,
    bytesByProxy: 0,
    connections: 1,
    connectionsOpen: 1,
    refusals: {},
  });
  connection.socket.end();
  await connection.waitForEnd();
});

test('the proxy keeps bytes that the browser sends before its tunnel is open', async t => {
  const port = await listen(
    t,
    createServer(socket => socket.pipe(socket)),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`CONNECT a.test:${port} HTTP/1.1\r\nHost: x\r\n\r\nearly`);
  connection.socket.write(' and soon after');
  await connection.waitForText('\r\n\r\nearly and soon after');
  connection.socket.destroy();
});

test('the proxy passes TLS end to end, so that the client verifies the certificate of the server', async t => {
  const port = await listen(
    t,
    createHttpsServer(tls, (_request, response) => response.end('secret')),
  );
  const folder = mkdtempSync(join(tmpdir(), 'berth-egress-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), tls.cert);
  const fixture = await openFixture(t, { ports: [port] });
  const trustedResult = await curl(fixture, '--cacert', join(folder, 'ca.pem'), `https://a.test:${port}/`);
  assert.equal(trustedResult.out.toString(), 'secret');
  const untrustedResult = await curl(fixture, `https://a.test:${port}/`);
  assert.equal(untrustedResult.code, 60);
});

test('the proxy passes a WebSocket through a tunnel, including a large message and the close code', async t => {
  const server = createHttpServer();
  new WebSocketServer({ server }).on('connection', socket =>
    socket.on('message', (data, binary) => socket.send(data, { binary })),
  );
  const port = await listen(t, server);
  const fixture = await openFixture(t, { ports: [port] });
  const { socket: tunnel } = await RawConnection.tunnel(fixture, `a.test:${port}`);
  tunnel.removeAllListeners('data');
  const client = new WebSocket(`ws://a.test:${port}/`, { createConnection: () => tunnel });
  await once(client, 'open');
  const big = randomBytes(1_000_000);
  client.send(big);
  const [echoed] = await once(client, 'message');
  assert.equal(sha(echoed), sha(big));
  client.close(4001, 'enough');
  const [code] = await once(client, 'close');
  assert.equal(code, 4001);
});

test('the proxy does not forward an Upgrade in a plain request', async t => {
  const port = await startOrigin(t, (request, response) => response.end(String(request.headers.upgrade ?? 'none')));
  const fixture = await openFixture(t, { ports: [port] });
  const { out } = await curl(
    fixture,
    '-H',
    'Upgrade: websocket',
    '-H',
    'Connection: Upgrade',
    `http://a.test:${port}/`,
  );
  assert.equal(out.toString(), 'none');
});

test('the proxy keeps connections alive, with one connection to the server per connection of the browser', async t => {
  let connectionCount = 0;
  const server = createHttpServer((_request, response) => response.end('ok'));
  // Disables the server's keep-alive timeout, so that the interval between the two requests does not matter.
  server.keepAliveTimeout = 0;
  server.on('connection', () => (connectionCount += 1));
  const port = await listen(t, server);
  const fixture = await openFixture(t, { ports: [port], hosts: { 'b.test': '127.0.0.1' } });
  const a = `http://a.test:${port}/`;
  const { out } = await curl(fixture, a, a, a, '-w', '%{num_connects} ');
  assert.equal(out.toString().replaceAll('ok', ''), '1 0 0 ');
  assert.equal(connectionCount, 1);
  await curl(fixture, a, `http://b.test:${port}/`, a);
  assert.equal(connectionCount, 4, 'a request to another host replaces the kept connection');
  await pollUntil(WAIT_TIMEOUT_MS, 'all connections to be closed', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );
});

test('the proxy repeats a request on a new connection when the server has closed the kept-alive connection', async t => {
  const requestCounts = new WeakMap<Socket, number>();
  const methods: string[] = [];
  const port = await startOrigin(t, (request, response) => {
    const count = (requestCounts.get(request.socket) ?? 0) + 1;
    requestCounts.set(request.socket, count);
    // The second request hits a closed connection, as when the server's keep-alive has expired.
    if (count > 1) {
      request.socket.resetAndDestroy();
      return;
    }
    methods.push(request.method ?? '');
    response.end('ok');
  });
  const fixture = await openFixture(t, { ports: [port] });
  const url = `http://a.test:${port}/`;
  const { code, out } = await curl(
    fixture,
    url,
    url,
    '--next',
    '-q',
    '-sS',
    '--noproxy',
    '',
    '--proxy',
    fixture.proxyUrl,
    '-d',
    'x',
    url,
    url,
  );
  assert.equal(code, 0);
  assert.equal(out.toString(), 'okokokok');
  assert.deepEqual(methods, ['GET', 'GET', 'POST', 'POST']);
});

test('the proxy forwards the head of a response before its body arrives', async t => {
  const port = await startOrigin(t, (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`GET http://a.test:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(await connection.waitForText('\r\n\r\n'), /text\/event-stream/);
  connection.socket.destroy();
  await pollUntil(WAIT_TIMEOUT_MS, 'the connection to the server to close with the connection of the browser', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );
});

test('after one side of a tunnel has ended, the other side can still send, and all bytes arrive', async t => {
  const upperCaseServer = createServer({ allowHalfOpen: true }, async socket => {
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part);
    socket.end(Buffer.concat(parts).toString().toUpperCase());
  });
  const port = await listen(t, upperCaseServer);
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  connection.socket.write('ask');
  connection.socket.end('ed');
  await connection.waitForEnd();
  assert.equal(connection.text, 'ASKED');

  const talkerPort = await listen(
    t,
    createServer({ allowHalfOpen: true }, socket => {
      socket.end('said');
      socket.on('data', part => receivedParts.push(part));
    }),
  );
  const receivedParts: Buffer[] = [];
  fixture.egress.replacePolicy(policyForPorts([talkerPort]));
  const otherConnection = await RawConnection.tunnel(fixture, `a.test:${talkerPort}`);
  await otherConnection.waitForEnd();
  assert.equal(otherConnection.text, 'said');
  otherConnection.socket.end('still here');
  await pollUntil(WAIT_TIMEOUT_MS, 'the other side to get all bytes', () =>
    Buffer.concat(receivedParts).toString() === 'still here' ? true : undefined,
  );
});

test('the proxy delivers all bytes before closing, even to a slow reader', async t => {
  const bytes = randomBytes(5_000_000);
  const port = await listen(
    t,
    createServer(socket => socket.end(bytes)),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  connection.socket.end();
  connection.socket.pause();
  await pollUntil(WAIT_TIMEOUT_MS, '100 kB to be received from the server', () =>
    fixture.egress.counters().bytesDown > 100_000 ? true : undefined,
  );
  connection.socket.resume();
  await connection.waitForEnd();
  assert.equal(sha(connection.bytes), sha(bytes));
});

test('the proxy applies backpressure to the sender when the reader is slow', async t => {
  const chunk = Buffer.alloc(1 << 20);
  const port = await listen(
    t,
    createServer(socket => {
      const more = (): void => {
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on('drain', more).on('error', () => {});
      more();
    }),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  connection.socket.pause();
  let lastBytes = -1;
  const stoppedAtBytes = await pollUntil(
    WAIT_TIMEOUT_MS,
    'the transfer to stop',
    () => {
      const now = fixture.egress.counters().bytesDown;
      const hasStopped = now > 0 && now === lastBytes;
      lastBytes = now;
      return hasStopped ? now : undefined;
    },
    150,
  );
  // The limit allows for the buffers of the kernel. Our own buffers add at most 64 KiB.
  assert.ok(stoppedAtBytes < 40 * 1024 * 1024, `${stoppedAtBytes} bytes were accepted`);
  connection.socket.destroy();
});

test('the proxy rejects, counts and reports a forbidden request, and the response names the rule but not the address', async t => {
  const reportedRefusals: Refusal[] = [];
  const fixture = await openFixture(t, {
    hosts: { 'inside.test': '10.9.9.9' },
    listener: { refused: refusal => reportedRefusals.push(refusal) },
  });
  const plainResult = await curl(fixture, '-i', '-d', 'body', 'http://inside.test/');
  assert.match(plainResult.out.toString(), /^HTTP\/1.1 403 Forbidden\r\n/);
  assert.match(plainResult.out.toString(), /x-berth-refused: private\r\n/);
  assert.doesNotMatch(plainResult.out.toString(), /10\.9/);
  const tunnelResult = await curl(fixture, '-v', 'https://inside.test/');
  assert.equal(tunnelResult.code, 56);
  assert.match(tunnelResult.err, /HTTP\/1.1 403 Forbidden/);
  assert.match(tunnelResult.err, /x-berth-refused: private/);
  await curl(fixture, 'http://localhost:1/', 'http://x.localhost:1/');
  assert.deepEqual(fixture.egress.counters().refusals, { private: 2, loopback: 2 });
  assert.deepEqual(
    reportedRefusals.map(({ rule, via, hostname, port }) => [rule, via, hostname, port]),
    [
      ['private', 'http', 'inside.test', 80],
      ['private', 'connect', 'inside.test', 443],
      ['loopback', 'http', 'localhost', 1],
      ['loopback', 'http', 'x.localhost', 1],
    ],
  );
});

test('when the policy is replaced, the proxy applies the new policy at once to new requests and open tunnels', async t => {
  const port = await listen(
    t,
    createServer(socket => socket.pipe(socket)),
  );
  const otherPort = await listen(
    t,
    createServer(socket => socket.pipe(socket)),
  );
  const fixture = await openFixture(t, { ports: [port, otherPort] });
  const forbiddenTunnel = await RawConnection.tunnel(fixture, `a.test:${port}`);
  const allowedTunnel = await RawConnection.tunnel(fixture, `a.test:${otherPort}`);
  fixture.egress.replacePolicy(policyForPorts([otherPort]));
  await forbiddenTunnel.waitForEnd();
  await assert.rejects(RawConnection.tunnel(fixture, `a.test:${port}`), /x-berth-refused: loopback/);
  allowedTunnel.socket.write('here');
  await allowedTunnel.waitForText('here');
  allowedTunnel.socket.destroy();
});

test("the proxy serves the session's own connect address itself, without opening a connection", async t => {
  const ownServer = createHttpServer((request, response) => response.end(`own ${request.url}`));
  const server = new WebSocketServer({ server: ownServer });
  server.on('connection', socket => socket.on('message', data => socket.send(data)));
  const self = {
    hostname: '127.0.0.1',
    port: 8080,
    accept: (socket: unknown) => void ownServer.emit('connection', socket),
  };
  const fixture = await openFixture(t, { self });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write('CONNECT 127.1:8080 HTTP/1.1\r\nHost: x\r\n\r\nGET /early HTTP/1.1\r\nHost: x\r\n\r\n');
  await connection.waitForText('own /early');
  connection.socket.destroy();
  const { socket: tunnel } = await RawConnection.tunnel(fixture, '127.0.0.1:8080');
  tunnel.removeAllListeners('data');
  const client = new WebSocket('ws://127.0.0.1:8080/connect', { createConnection: () => tunnel });
  await once(client, 'open');
  client.send('hello');
  assert.equal(String((await once(client, 'message'))[0]), 'hello');
  client.terminate();
  assert.equal(fixture.egress.counters().connections, 0);
});

test('the proxy refuses plain requests to the connect address, and tunnels to other spellings or ports of it', async t => {
  let acceptedCount = 0;
  const fixture = await openFixture(t, {
    self: { hostname: '127.0.0.1', port: 8080, accept: () => (acceptedCount += 1) },
  });
  const plainResult = await curl(
    fixture,
    '-i',
    '-H',
    'Upgrade: websocket',
    '-H',
    'Connection: Upgrade',
    'http://127.0.0.1:8080/v1/browsers/sessions',
  );
  assert.match(plainResult.out.toString(), /^HTTP\/1.1 403 [\s\S]*x-berth-refused: own_service/);
  for (const authority of ['localhost:8080', '127.0.0.2:8080', '127.0.0.1:8081', '[::1]:8080'])
    await assert.rejects(RawConnection.tunnel(fixture, authority), /x-berth-refused: loopback/, authority);
  assert.equal(acceptedCount, 0);
});

test("the proxy terminates TLS for the server's own https address with the operator's certificate", async t => {
  const ownServer = createHttpServer((request, response) => response.end(`own ${request.url}`));
  const self = {
    hostname: 'Browsers.test',
    port: 443,
    tls,
    accept: (socket: unknown) => void ownServer.emit('connection', socket),
  };
  const folder = mkdtempSync(join(tmpdir(), 'berth-egress-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), tls.cert);
  const fixture = await openFixture(t, { self });
  for (const path of ['/one', '/two']) {
    const { out } = await curl(fixture, '--cacert', join(folder, 'ca.pem'), `https://browsers.test${path}`);
    assert.equal(out.toString(), `own ${path}`);
  }
  const connection = await RawConnection.tunnel(fixture, 'browsers.test:443');
  connection.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await connection.waitForEnd();
  assert.doesNotMatch(connection.text, /own/);
});

test('closing the proxy closes all its connections, and the next session can use the same listener', async t => {
  const port = await listen(
    t,
    createServer(socket => socket.pipe(socket)),
  );
  const fixture = await openFixture(t, { ports: [port] });
  const connection = await RawConnection.tunnel(fixture, `a.test:${port}`);
  const unusedConnection = await RawConnection.open(fixture.proxyPort);
  await fixture.egress.close();
  await Promise.all([connection.waitForEnd(), unusedConnection.waitForEnd()]);
  assert.equal(fixture.egress.counters().connectionsOpen, 0);
  const lateConnection = await RawConnection.open(fixture.proxyPort);
  await lateConnection.waitForEnd();
  await fixture.egress.close();

  const { openEgress } = await import('../../server/engines/egress/egress.ts');
  const { createResolver } = await import('../../server/engines/egress/resolve.ts');
  const { systemClock } = await import('../../server/kit/clock.ts');
  const { silentLog } = await import('../../server/kit/log.ts');
  const resolve = createResolver({ hosts: new Map([['a.test', '127.0.0.1']]), clock: systemClock });
  const nextEgress = openEgress({
    server: fixture.server,
    policy: policyForPorts([port]),
    resolve,
    clock: systemClock,
    log: silentLog,
  });
  t.after(() => nextEgress.close());
  const newTunnel = await RawConnection.tunnel(fixture, `a.test:${port}`);
  newTunnel.socket.write('again');
  await newTunnel.waitForText('again');
  newTunnel.socket.destroy();
});

test('a request from the HTTP client of Node.js succeeds through the proxy', async t => {
  const port = await startOrigin(t, (_request, response) => response.end('fine'));
  const fixture = await openFixture(t, { ports: [port] });
  const request = httpRequest({
    host: '127.0.0.1',
    port: fixture.proxyPort,
    path: `http://a.test:${port}/`,
    headers: { connection: 'close' },
  });
  request.end();
  const [response] = await once(request, 'response');
  assert.equal((await readBody(response)).toString(), 'fine');
});
