// Attacks on the requests that the server sends to user-supplied addresses: attacks on the destination and the content
// of a request, and attacks by the host that responds.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import type { AddressRange } from '../../server/engines/egress/address.ts';
import type { CallFailure } from '../../server/engines/egress/outbound-calls/call-failure.ts';
import {
  type CallResponse,
  type CallResult,
  type OutboundCall,
  OutboundCalls,
  type OutboundOptions,
} from '../../server/engines/egress/outbound-calls/outbound-calls.ts';
import { createResolver } from '../../server/engines/egress/resolve.ts';
import { addressRules } from '../../server/engines/egress/rules.ts';
import { createThisMachine, type Listener } from '../../server/engines/egress/this-machine.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { type Answerer, openNameServer, PATIENT_TIMEOUTS } from '../engines/egress-dns.ts';
import { listen, loopbackRange } from '../engines/egress-fixture.ts';
import { makeAuthority } from '../harness/authority.ts';

const HOST = 'hooks.test';
const DEADLINE_MS = 20_000;
const RESPONSE_BYTES_MAX = 64 * 1024;
const authority = makeAuthority('Outbound test');
const leaf = authority.issue(HOST);

interface OpenOptions {
  readonly ports: readonly number[];
  readonly hosts?: Readonly<Record<string, string>>;
  readonly answerer?: Answerer;
  readonly listeners?: readonly Listener[];
  readonly allow?: readonly AddressRange[];
  readonly limits?: OutboundOptions['limits'];
}

interface OpenedOutbound {
  send(url: string, call?: Partial<OutboundCall>, signal?: AbortSignal): Promise<CallResult>;
  check(url: string): Promise<CallFailure | undefined>;
  asked(name: string): number;
}

async function open(t: TestContext, options: OpenOptions): Promise<OpenedOutbound> {
  const { ports, hosts = { [HOST]: '127.0.0.1' }, answerer = () => ({ addresses: [] }), listeners = [] } = options;
  const nameServer = await openNameServer(answerer);
  t.after(() => nameServer[Symbol.asyncDispose]());
  const machine = createThisMachine({ listeners, clock: systemClock });
  const calls = new OutboundCalls({
    rules: addressRules([...ports.map(loopbackRange), ...(options.allow ?? [])], machine),
    resolver: () =>
      createResolver({
        hosts: new Map(Object.entries(hosts)),
        ...{ clock: systemClock, servers: [nameServer.address], timeouts: PATIENT_TIMEOUTS },
      }),
    authorities: authority.pem,
    limits: options.limits ?? {},
  });
  return {
    send: (url, call, signal) =>
      calls.send(
        { method: 'POST', url, deadlineMs: DEADLINE_MS, maxResponseBytes: RESPONSE_BYTES_MAX, ...call },
        signal,
      ),
    check: url => calls.check(url),
    asked: name => nameServer.queryCount(name),
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Opens a TLS receiver that records the requests that reach it. */
async function openReceiver(t: TestContext, handler: Handler, certificate = leaf) {
  const seen: IncomingMessage[] = [];
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    seen.push(request);
    handler(request, response);
  });
  const port = await listen(t, server);
  return { port, seen, url: `https://${HOST}:${port}` };
}

/** Opens a TLS server that responds without an HTTP library. */
async function openRawServer(t: TestContext, speak: (socket: Socket) => void) {
  const server = createTlsServer({ cert: leaf.cert, key: leaf.key }, socket => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => speak(socket));
  });
  const port = await listen(t, server);
  return { port, url: `https://${HOST}:${port}/` };
}

/** Opens a server that must not be reached. */
async function openTrap(t: TestContext) {
  let hits = 0;
  const server = createTcpServer(socket => {
    hits += 1;
    socket.destroy();
  });
  return { port: await listen(t, server), hits: () => hits };
}

function expectResponse(result: CallResult): CallResponse {
  if (result.kind !== 'answered') assert.fail(JSON.stringify(result));
  return result;
}

function expectFailure(result: CallResult | undefined): CallFailure {
  if (result?.kind !== 'failed')
    assert.fail(`the call was expected to fail, but the result is ${JSON.stringify(result)}`);
  return result;
}

const summarizeFailure = (result: CallResult | undefined): string => {
  const { phase, reason, rule } = expectFailure(result);
  return [phase, reason, ...(rule ? [rule] : [])].join(' ');
};

test('a request is sent to the checked address, with the host name in SNI and in the Host header', async t => {
  const { port, seen, url } = await openReceiver(t, (request, response) => {
    response.writeHead(201, { 'x-one': 'a', 'content-type': 'text/plain' });
    request.pipe(response);
  });
  const outbound = await open(t, { ports: [port] });
  const body = Buffer.from('{"a":1}');
  const reply = expectResponse(
    await outbound.send(`${url}/p?q=1`, { body, headers: { 'content-type': 'application/json' } }),
  );
  assert.deepEqual([reply.status, reply.body.toString(), reply.headers.get('x-one')], [201, '{"a":1}', 'a']);
  assert.deepEqual(reply.endpoint, { address: '127.0.0.1', port, isEncrypted: true });
  const [request] = seen;
  assert.deepEqual([request?.url, request?.headers.host], ['/p?q=1', `${HOST}:${port}`]);
  assert.equal(request?.socket instanceof TLSSocket && request.socket.servername, HOST);
  assert.equal(request?.headers['accept-encoding'], 'identity');
  for (const name of ['cookie', 'authorization', 'proxy-authorization']) assert.ok(!(name in (request?.headers ?? {})));
});

test('a redirect to the metadata address or to loopback is returned and not followed', async t => {
  const bait = await openTrap(t);
  const target = await openReceiver(t, (request, response) => {
    const location =
      request.url === '/own' ? `http://127.0.0.1:${bait.port}/` : 'http://169.254.169.254/latest/meta-data/';
    response.writeHead(request.url === '/keep' ? 308 : 302, { location }).end();
  });
  const outbound = await open(t, { ports: [target.port, bait.port] });
  assert.equal(expectResponse(await outbound.send(`${target.url}/`)).status, 302);
  assert.equal(expectResponse(await outbound.send(`${target.url}/keep`)).status, 308);
  assert.equal(expectResponse(await outbound.send(`${target.url}/own`)).status, 302);
  assert.deepEqual([target.seen.length, bait.hits()], [3, 0]);
});

test('private addresses are refused in every spelling, before a connection is opened', async t => {
  const bait = await openTrap(t);
  const outbound = await open(t, { ports: [] });
  const spellings: ReadonlyArray<readonly [string, string]> = [
    ['127.0.0.1', 'loopback'],
    ['2130706433', 'loopback'],
    ['0x7f000001', 'loopback'],
    ['0177.0.0.1', 'loopback'],
    ['127.1', 'loopback'],
    ['①②⑦.0.0.1', 'loopback'],
    ['%31%32%37.0.0.1', 'loopback'],
    ['localhost', 'loopback'],
    ['a.localhost', 'loopback'],
    ['[::1]', 'loopback'],
    ['[::ffff:127.0.0.1]', 'loopback'],
    ['[::ffff:7f00:1]', 'loopback'],
    ['[64:ff9b::7f00:1]', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['[::]', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'shared'],
    ['169.254.169.254', 'metadata'],
    ['2852039166', 'metadata'],
    ['[::ffff:a9fe:a9fe]', 'metadata'],
    ['[fd00:ec2::254]', 'metadata'],
    ['169.254.1.1', 'link_local'],
    ['[fe80::1]', 'link_local'],
    ['[fc00::1]', 'unique_local'],
    ['224.0.0.1', 'multicast'],
    ['[ff02::1]', 'multicast'],
    ['255.255.255.255', 'broadcast'],
  ];
  for (const [host, rule] of spellings) {
    const url = `https://${host}:${bait.port}/`;
    assert.equal(summarizeFailure(await outbound.send(url)), `refused address_not_allowed ${rule}`, host);
    assert.equal(summarizeFailure(await outbound.check(url)), `refused address_not_allowed ${rule}`, host);
  }
  assert.equal(bait.hits(), 0);
});

test('a name is refused if one of its addresses is private, at any position in the DNS response', async t => {
  const { port, seen } = await openReceiver(t, (_, response) => response.end());
  const answers: Readonly<Record<string, readonly string[]>> = {
    'first.test': ['10.0.0.1', '127.0.0.1'],
    'last.test': ['127.0.0.1', '127.0.0.1', '10.0.0.1'],
    'other-family.test': ['127.0.0.1', 'fd00::1'],
    'mapped.test': ['127.0.0.1', '::ffff:10.0.0.1'],
    'meta.test': ['127.0.0.1', '169.254.169.254'],
  };
  const outbound = await open(t, {
    ports: [port],
    answerer: ({ name, type }) => ({
      addresses: (answers[name] ?? []).filter(address => address.includes(':') === (type === 'AAAA')),
    }),
  });
  const rules = { 'other-family.test': 'unique_local', 'meta.test': 'metadata' } as Readonly<Record<string, string>>;
  for (const name of Object.keys(answers)) {
    const url = `https://${name}:${port}/`;
    assert.equal(
      summarizeFailure(await outbound.send(url)),
      `refused address_not_allowed ${rules[name] ?? 'private'}`,
      name,
    );
  }
  assert.equal(seen.length, 0);
});

test('a call is refused if the address of the name has become private since the check, and each call resolves the name once', async t => {
  const { port, seen } = await openReceiver(t, (_, response) => response.end());
  const outbound = await open(t, {
    ports: [port],
    hosts: {},
    answerer: ({ type, time }) => ({
      addresses: type === 'AAAA' ? [] : [time % 2 === 1 ? '127.0.0.1' : '10.0.0.1'],
      ttlSeconds: 60,
    }),
  });
  const url = `https://${HOST}:${port}/`;
  assert.equal(await outbound.check(url), undefined);
  assert.equal(summarizeFailure(await outbound.send(url)), 'refused address_not_allowed private');
  assert.equal(expectResponse(await outbound.send(url)).status, 200);
  assert.deepEqual([outbound.asked(HOST), seen.length], [3, 1]);
});

test('requests to the listeners of this server are refused even inside a range that the operator allowed', async t => {
  const ownListener = await openTrap(t);
  const allow: AddressRange[] = [{ address: '127.0.0.0', prefix: 8, family: 4 }];
  const outbound = await open(t, { ports: [], allow, listeners: [{ host: '127.0.0.1', port: ownListener.port }] });
  for (const host of [HOST, '127.0.0.1', '[::ffff:127.0.0.1]'])
    assert.equal(
      summarizeFailure(await outbound.send(`https://${host}:${ownListener.port}/`)),
      'refused address_not_allowed own_service',
    );
  assert.equal(ownListener.hits(), 0);
});

test('malformed URLs, URLs with user info, and URLs with a scheme other than http or https are refused', async t => {
  const outbound = await open(t, { ports: [] });
  for (const url of [`https://user:secret@${HOST}/`, `https://@${HOST}/`, `https://user@${HOST}/`])
    assert.equal(summarizeFailure(await outbound.send(url)), 'refused user_info', url);
  for (const url of [`ftp://${HOST}/`, 'file:///etc/passwd', 'data:,x', 'javascript:1', `ws://${HOST}/`])
    assert.equal(summarizeFailure(await outbound.send(url)), 'refused not_https', url);
  const ambiguousUrls = [
    ` https://${HOST}/`,
    `https://${HOST}/\r\nx: y`,
    `https:\\\\${HOST}`,
    'https://',
    `https://${HOST}:0/`,
  ];
  for (const url of [
    ...ambiguousUrls,
    '',
    `https://${HOST}/${'a'.repeat(2048)}`,
    'https://a..b/',
    'https://[::1%25lo]/',
  ])
    assert.equal(summarizeFailure(await outbound.send(url)), 'refused bad_url', url);
});

test('http is allowed only to an address that the operator opened', async t => {
  const server = createHttpServer((_, response) => response.end('plain'));
  const port = await listen(t, server);
  const outbound = await open(t, { ports: [port], hosts: { [HOST]: '127.0.0.1', 'public.test': '93.184.216.34' } });
  assert.equal(expectResponse(await outbound.send(`http://${HOST}:${port}/`)).body.toString(), 'plain');
  assert.equal(summarizeFailure(await outbound.send(`http://public.test:${port}/`)), 'refused not_https');
  assert.equal(summarizeFailure(await outbound.check('http://public.test/')), 'refused not_https');
});

test('headers that would inject other headers or control the connection are refused, and so are too many headers and invalid methods', async t => {
  const { port, seen, url } = await openReceiver(t, (_, response) => response.end());
  const outbound = await open(t, { ports: [port] });
  const refusedHeaders: ReadonlyArray<[reason: string, headers: Readonly<Record<string, string>>]> = [
    ['invalid_header', { 'x-a': 'b\r\nx-c: d' }],
    ['invalid_header', { 'x-a': 'b\nx-c: d' }],
    ['invalid_header', { 'x-a': '\u0000' }],
    ['invalid_header', { 'x-a': '\u560a' }],
    ['invalid_header', { 'x-a: b\r\nx-c': 'd' }],
    ['invalid_header', { '': 'b' }],
    ...['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Cookie', 'Expect', 'Accept-Encoding', 'TE'].map(
      (name): [string, Record<string, string>] => ['reserved_header', { [name]: 'x' }],
    ),
    ['repeated_header', { 'x-a': '1', 'X-A': '2' }],
  ];
  for (const [reason, headers] of refusedHeaders)
    assert.equal(summarizeFailure(await outbound.send(url, { headers })), `refused ${reason}`, JSON.stringify(headers));
  const manyHeaders = Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`x-${at}`, '1']));
  assert.equal(summarizeFailure(await outbound.send(url, { headers: manyHeaders })), 'refused too_many_headers');
  assert.equal(
    summarizeFailure(await outbound.send(url, { headers: { 'x-a': 'a'.repeat(40_000) } })),
    'refused too_many_headers',
  );
  for (const method of ['CONNECT', 'TRACE', 'get', 'GET /x HTTP/1.1\r\n'])
    assert.equal(summarizeFailure(await outbound.send(url, { method })), 'refused bad_method', method);
  assert.equal(seen.length, 0);
});

test('a compressed response is refused, and none of it is read', async t => {
  const { port, url } = await openReceiver(t, (request, response) => {
    const name = request.url === '/transfer' ? 'transfer-encoding' : 'content-encoding';
    // The body never arrives, so a call that reads any of it would time out.
    response.writeHead(200, { [name]: request.url === '/transfer' ? 'gzip, chunked' : 'gzip' }).flushHeaders();
  });
  const outbound = await open(t, { ports: [port] });
  for (const path of ['/', '/transfer']) {
    const result = expectFailure(await outbound.send(`${url}${path}`));
    assert.deepEqual([result.phase, result.reason, result.status], ['unknown', 'answer_encoded', 200], path);
  }
});

test('a response that is larger than allowed is aborted, with or without a declared length', async t => {
  let writtenBytes = 0;
  const { port, url } = await openReceiver(t, (request, response) => {
    if (request.url === '/long') return void response.writeHead(200, { 'content-length': 1e12 }).write('x');
    const part = Buffer.alloc(16 * 1024);
    const writeParts = (): void => {
      while (!response.destroyed) {
        writtenBytes += part.length;
        if (!response.write(part)) break;
      }
    };
    response.on('drain', writeParts);
    writeParts();
  });
  const outbound = await open(t, { ports: [port] });
  assert.equal(summarizeFailure(await outbound.send(`${url}/long`)), 'unknown answer_too_large');
  assert.equal(summarizeFailure(await outbound.send(`${url}/endless`)), 'unknown answer_too_large');
  assert.ok(writtenBytes < 64 * 1024 * 1024, `${writtenBytes} bytes were accepted`);
});

test('a response with endless or too many headers, or with endless interim responses, is aborted', async t => {
  const floods: Readonly<Record<string, (socket: Socket) => void>> = {
    answer_head_too_large: socket => flood(socket, 'HTTP/1.1 200 OK\r\n', `x-a: ${'a'.repeat(1000)}\r\n`),
    bad_answer: socket => flood(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  };
  for (const [reason, speak] of Object.entries(floods)) {
    const { port, url } = await openRawServer(t, speak);
    const outbound = await open(t, { ports: [port] });
    assert.equal(summarizeFailure(await outbound.send(url)), `unknown ${reason}`);
  }
  const manyHeaders = 'x: y\r\n'.repeat(101);
  const { port, url } = await openRawServer(t, socket =>
    socket.end(`HTTP/1.1 200 OK\r\n${manyHeaders}content-length: 0\r\n\r\n`),
  );
  const outbound = await open(t, { ports: [port] });
  assert.equal(summarizeFailure(await outbound.send(url)), 'unknown answer_head_too_large');
});

test('a response that is still arriving byte by byte at the deadline of the call is aborted', async t => {
  const responseHeads: ReadonlyArray<string> = ['', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'];
  for (const head of responseHeads) {
    const { port, url } = await openRawServer(t, socket => {
      socket.write(head);
      const dripTimer = setInterval(() => socket.write(head === '' ? 'H' : 'x'), 20);
      socket.once('close', () => clearInterval(dripTimer));
    });
    const outbound = await open(t, { ports: [port] });
    const result = await outbound.send(url, { deadlineMs: 700 });
    assert.match(summarizeFailure(result), head === '' ? /^unknown (timed_out|bad_answer)$/ : /^unknown timed_out$/);
  }
});

test('if a response is truncated or is not HTTP, the call fails, and its effect is reported as unknown', async t => {
  const malformedResponses: ReadonlyArray<readonly [string, string]> = [
    ['', 'closed_early'],
    ['HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', 'closed_early'],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab', 'closed_early'],
    ['220 mail.test ESMTP\r\n', 'bad_answer'],
    ['HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'closed_early|bad_answer'],
    ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 'bad_answer'],
  ];
  for (const [text, reason] of malformedResponses) {
    const { port, url } = await openRawServer(t, socket => socket.end(text));
    const outbound = await open(t, { ports: [port] });
    assert.match(summarizeFailure(await outbound.send(url)), new RegExp(`^unknown (${reason})$`), JSON.stringify(text));
  }
});

test('no part of the request is sent to a host that closes the connection, is silent or has an invalid certificate', async t => {
  const closingServer = await openTrap(t);
  const silentPort = await listen(
    t,
    createTcpServer(() => {}),
  );
  const otherReceiver = await openReceiver(t, (_, response) => response.end(), authority.issue('other.test'));
  const expiredReceiver = await openReceiver(
    t,
    (_, response) => response.end(),
    authority.issue(HOST, { from: -9, to: -2 }),
  );
  const foreignReceiver = await openReceiver(t, (_, response) => response.end(), makeAuthority('Somebody').issue(HOST));
  const ports = [closingServer.port, silentPort, otherReceiver.port, expiredReceiver.port, foreignReceiver.port];
  const outbound = await open(t, { ports, limits: { connectMs: 1000 } });
  const sendTo = async (port: number): Promise<string> =>
    summarizeFailure(await outbound.send(`https://${HOST}:${port}/`));
  assert.match(await sendTo(closingServer.port), /^not_sent (tls_failed|connect_failed)$/);
  assert.equal(await sendTo(silentPort), 'not_sent connect_timed_out');
  for (const { port } of [otherReceiver, expiredReceiver, foreignReceiver])
    assert.equal(await sendTo(port), 'not_sent certificate_refused');
  assert.equal(summarizeFailure(await outbound.send('https://nowhere.test/')), 'not_sent name_not_resolved');
  assert.deepEqual([otherReceiver.seen.length, expiredReceiver.seen.length, foreignReceiver.seen.length], [0, 0, 0]);
});

test('a cancelled call ends, and reports whether its request was already sent', async t => {
  const { port, url, seen } = await openReceiver(t, () => abortController.abort(new Error('enough')));
  const abortController = new AbortController();
  const outbound = await open(t, { ports: [port] });
  assert.equal(
    summarizeFailure(await outbound.send(url, {}, AbortSignal.abort(new Error('before')))),
    'not_sent cancelled',
  );
  assert.equal(summarizeFailure(await outbound.send(url, {}, abortController.signal)), 'unknown cancelled');
  assert.equal(seen.length, 1);
});

test('no failure reveals an address, a port or a system error', async t => {
  const outbound = await open(t, { ports: [], hosts: { 'inner.test': '10.1.2.3' } });
  for (const url of ['https://inner.test:8443/', 'https://nowhere.test/', 'https://user:pw@inner.test/']) {
    const { message } = expectFailure(await outbound.send(url));
    assert.doesNotMatch(message, /10\.1\.2\.3|8443|ECONN|ENOTFOUND|pw/, message);
  }
});

test('requests do not use a proxy from the environment', async t => {
  const bait = await openTrap(t);
  const { port, url } = await openReceiver(t, (_, response) => response.end('direct'));
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
  const valuesBefore = names.map(name => process.env[name]);
  t.after(() => {
    for (const [at, name] of names.entries()) {
      const value = valuesBefore[at];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : `http://127.0.0.1:${bait.port}`;
  const outbound = await open(t, { ports: [port] });
  assert.equal(expectResponse(await outbound.send(url)).body.toString(), 'direct');
  assert.equal(bait.hits(), 0);
});

/** Writes the head, and then writes `part` again and again until the client closes the connection. */
function flood(socket: Socket, head: string, part: string): void {
  socket.write(head);
  const writeParts = (): void => {
    while (!socket.destroyed && socket.writable) if (!socket.write(part)) break;
  };
  socket.on('drain', writeParts);
  writeParts();
}
