// Upstream proxies that are slow, abort or send invalid data. Only the request is affected, the failure is named, and
// the next request succeeds. tests/acceptance/proxies.test.ts uses real proxy programs.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { ProxyFailure } from '../../server/engines/egress/egress.ts';
import { egressPolicy } from '../../server/engines/egress/policy.ts';
import { createThisMachine } from '../../server/engines/egress/this-machine.ts';
import type { Upstream } from '../../server/engines/egress/upstream.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { pollUntil } from '../../server/kit/wait.ts';
import { type Fixture, listen, loopbackRange, openFixture, RawConnection, WAIT_TIMEOUT_MS } from './egress-fixture.ts';

/** A short limit for tests of a timeout. The other tests use a long one, so that a slow machine does not reach it. */
const SHORT_TIMEOUT_MS = 300;
const HEAD_END = '\r\n\r\n';
const CONNECT_RESPONSE = 'HTTP/1.1 200 Fine\r\n\r\n';
const SOCKS_METHOD_REPLY = Buffer.from([5, 0]);
const SOCKS_CONNECT_REPLY = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);

/** Answers a message that was received. `time` is its number, starting with 1. */
type Responder = (socket: Socket, received: string, time: number) => void;

interface ProxiedFixture {
  readonly fixture: Fixture;
  readonly failures: readonly ProxyFailure[];
}

/** Opens a session with one upstream proxy per host, which answers as the test defines. */
async function openProxiedFixture(
  t: TestContext,
  scheme: Upstream['scheme'],
  responders: Readonly<Record<string, Responder>>,
  connectMs = WAIT_TIMEOUT_MS,
): Promise<ProxiedFixture> {
  const failures: ProxyFailure[] = [];
  const upstreams = new Map<string, Upstream>();
  for (const [host, talk] of Object.entries(responders)) {
    const port = await listen(
      t,
      createServer(socket => {
        let time = 0;
        socket.on('error', () => {}).on('data', data => talk(socket, data.toString('latin1'), ++time));
      }),
    );
    upstreams.set(host, { name: host, scheme, hostname: '127.0.0.1', port, trusted: false });
  }
  const allow = [...upstreams.values()].map(({ port }) => loopbackRange(port));
  const fixture = await openFixture(t, {
    policy: egressPolicy({
      allow,
      machine: createThisMachine({ listeners: [], clock: systemClock }),
      routeTo: hostname => upstreams.get(hostname),
    }),
    limits: { connectMs, tlsHandshakeMs: connectMs },
    listener: { proxyFailed: failure => failures.push(failure) },
  });
  return { fixture, failures };
}

/** Sends a CONNECT request and returns the response. */
async function tunnel(fixture: Fixture, authority: string): Promise<string> {
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const head = await connection.waitForText(HEAD_END);
  connection.socket.destroy();
  return head;
}

const waitUntilNothingOpen = (fixture: Fixture): Promise<true> =>
  pollUntil(WAIT_TIMEOUT_MS, 'all connections to servers to be closed', () =>
    fixture.egress.counters().connectionsOpen === 0 ? true : undefined,
  );

const silentResponder: Responder = () => {};

for (const [scheme, responders] of [
  ['http', { 'silent.test': silentResponder, 'half.test': socket => void socket.write('HTTP/1.1 20') }],
  ['https', { 'silent.test': silentResponder }],
  [
    'socks5',
    {
      'silent.test': silentResponder,
      'half.test': (socket, _, time) =>
        void socket.write(time === 1 ? SOCKS_METHOD_REPLY : SOCKS_CONNECT_REPLY.subarray(0, 3)),
    },
  ],
] as const satisfies ReadonlyArray<readonly [Upstream['scheme'], Readonly<Record<string, Responder>>]>)
  test(`a request times out when a ${scheme} proxy does not respond completely, and the failure is reported`, async t => {
    const { fixture, failures } = await openProxiedFixture(t, scheme, responders, SHORT_TIMEOUT_MS);
    for (const host of Object.keys(responders)) {
      const head = await tunnel(fixture, `${host}:443`);
      assert.match(head, /^HTTP\/1\.1 504 [\s\S]*x-berth-failed: proxy_timed_out\r\n/, host);
      const { proxy, kind, hostname } = failures.at(-1) ?? {};
      assert.deepEqual([proxy, kind, hostname], [host, 'proxy_timed_out', host]);
    }
    await waitUntilNothingOpen(fixture);
  });

test('a tunnel opens even if the response of the upstream proxy arrives one byte at a time', async t => {
  const { fixture, failures } = await openProxiedFixture(t, 'http', {
    'slow.test': async (socket, received) => {
      if (!received.startsWith('CONNECT ')) return void socket.write(`received ${received}`);
      for (const character of CONNECT_RESPONSE) {
        socket.write(character);
        await new Promise(done => setImmediate(done));
      }
    },
  });
  const connection = await RawConnection.tunnel(fixture, 'slow.test:443');
  connection.socket.write('hello');
  await connection.waitForText('received hello');
  connection.socket.destroy();
  assert.deepEqual(failures, []);
});

test('bytes from the destination that arrive together with the response of the upstream proxy are kept', async t => {
  const { fixture } = await openProxiedFixture(t, 'socks5', {
    'first.test': (socket, _, time) =>
      void socket.write(
        time === 1 ? SOCKS_METHOD_REPLY : Buffer.concat([SOCKS_CONNECT_REPLY, Buffer.from('220 ready')]),
      ),
  });
  const connection = await RawConnection.tunnel(fixture, 'first.test:25');
  await connection.waitForText('220 ready');
  connection.socket.destroy();
});

const BODY = randomBytes(300_000).toString('hex');

for (const [how, breakOff] of [
  ['ends', (socket: Socket) => void socket.end()],
  ['resets', (socket: Socket) => void socket.resetAndDestroy()],
] as const)
  test(`only the affected requests are aborted when an upstream proxy ${how} the connection in the middle of a body`, async t => {
    const { fixture, failures } = await openProxiedFixture(t, 'http', {
      'breaks.test': (socket, received) => {
        if (received.startsWith('CONNECT ')) return void socket.write(CONNECT_RESPONSE);
        if (received.includes('/whole')) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole');
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${2 * BODY.length}\r\n\r\n${BODY}`, () => breakOff(socket));
      },
    });
    const plainConnection = await RawConnection.open(fixture.proxyPort);
    plainConnection.socket.write('GET http://breaks.test/half HTTP/1.1\r\nHost: breaks.test\r\n\r\n');
    const tunnelConnection = await RawConnection.tunnel(fixture, 'breaks.test:443');
    tunnelConnection.socket.write('GET /half HTTP/1.1\r\nHost: breaks.test\r\n\r\n');
    for (const connection of [plainConnection, tunnelConnection]) {
      await connection.waitForEnd();
      assert.ok(connection.bytes.length < 2 * BODY.length, 'the response was cut off');
      connection.socket.destroy();
    }
    const nextConnection = await RawConnection.open(fixture.proxyPort);
    nextConnection.socket.write('GET http://breaks.test/whole HTTP/1.1\r\nHost: breaks.test\r\n\r\n');
    await nextConnection.waitForText(`${HEAD_END}whole`);
    nextConnection.socket.destroy();
    assert.deepEqual(failures, [], 'an aborted body is not reported as a failure of the proxy');
    await waitUntilNothingOpen(fixture);
  });

test('a large plain body passes through an upstream proxy unchanged and is counted', async t => {
  const largeBody = randomBytes(5 * 1024 * 1024);
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${largeBody.length}\r\n\r\n`;
  const { fixture } = await openProxiedFixture(t, 'http', {
    'large.test': socket => {
      socket.write(head);
      socket.write(largeBody);
    },
  });
  const connection = await RawConnection.open(fixture.proxyPort);
  const request = 'GET http://large.test/ HTTP/1.1\r\nHost: large.test\r\n\r\n';
  connection.socket.write(request);
  const bodyStart = (await connection.waitForText(HEAD_END)).indexOf(HEAD_END) + HEAD_END.length;
  assert.ok((await connection.waitForBytes(bodyStart + largeBody.length)).subarray(bodyStart).equals(largeBody));
  await waitUntilNothingOpen(fixture);
  const { bytesByProxy, bytesUp, bytesDown } = fixture.egress.counters();
  assert.equal(bytesDown, head.length + largeBody.length);
  assert.equal(bytesByProxy, bytesUp + bytesDown);
  connection.socket.destroy();
});

test('a body that arrives slowly through an upstream proxy is forwarded completely', async t => {
  const dripCount = 40;
  const { fixture } = await openProxiedFixture(t, 'http', {
    'drips.test': async socket => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${dripCount}\r\n\r\n`);
      for (let drip = 0; drip < dripCount; drip++) {
        await new Promise(done => setTimeout(done, 5));
        socket.write('.');
      }
    },
  });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write('GET http://drips.test/ HTTP/1.1\r\nHost: drips.test\r\n\r\n');
  await connection.waitForText(`${HEAD_END}${'.'.repeat(dripCount)}`);
  connection.socket.destroy();
});

test('the proxy reports bad_answer in an interim response if an upstream proxy closes the connection before it responds', async t => {
  const { fixture } = await openProxiedFixture(t, 'http', { 'shut.test': socket => void socket.end() });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write('GET http://shut.test/ HTTP/1.1\r\nHost: shut.test\r\n\r\n');
  assert.match(await connection.waitForText(HEAD_END), /^HTTP\/1\.1 100 [\s\S]*x-berth-failed: bad_answer\r\n/);
  connection.socket.destroy();
});

test('all connections are released when the browser disconnects while an upstream proxy is slow', async t => {
  const { fixture, failures } = await openProxiedFixture(t, 'http', { 'silent.test': silentResponder });
  const connection = await RawConnection.open(fixture.proxyPort);
  connection.socket.write('CONNECT silent.test:443 HTTP/1.1\r\nHost: silent.test\r\n\r\n');
  await pollUntil(WAIT_TIMEOUT_MS, 'the proxy to be reached', () =>
    fixture.egress.counters().connectionsOpen === 1 ? true : undefined,
  );
  connection.socket.resetAndDestroy();
  await waitUntilNothingOpen(fixture);
  assert.deepEqual(failures, []);
});
