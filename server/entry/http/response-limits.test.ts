import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import fastify from 'fastify';
import { eventually } from '../../../tests/harness/until.ts';
import { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import { isFault } from '../../kit/fault.ts';
import { limitResponses } from './response-limits.ts';

const MIB = 1024 ** 2;
const HOUR_MS = 3_600_000;
const closeFunctions: Array<() => Promise<void>> = [];
after(() => Promise.all(closeFunctions.map(close => close())));

interface OpenedServer {
  /** Sends a request without reading the response. */
  sendUnread(path: string): Promise<Socket>;
  url: string;
  /**
   * Whether the handler of the route `/late` has begun, and whether it has sent its response. It responds only after
   * its caller has disconnected.
   */
  readonly late: { begun: boolean; sent: boolean };
}

async function open({ streams = 10, silenceMs = HOUR_MS }): Promise<OpenedServer> {
  const app = fastify();
  limitResponses(app, {
    waitingBytes: new WaitingBytes({ session: 40 * MIB, application: 40 * MIB, process: 40 * MIB }),
    callerOf: () => undefined,
    streamsMax: { session: streams, application: streams, process: streams },
    silenceMs,
  });
  app.setErrorHandler((error, _, reply) => reply.code(429).send(isFault(error) ? error.code : String(error)));
  app.get('/text/:mib', async ({ params }) => 'x'.repeat(Number(Object(params).mib) * MIB));
  app.get('/stream', (_, reply) => reply.send(Readable.from([Buffer.alloc(30 * MIB)])));
  const late = { begun: false, sent: false };
  app.get('/late', async (request, reply) => {
    late.begun = true;
    await once(request.raw.socket, 'close');
    setImmediate(() => {
      late.sent = true;
    });
    return reply.send(Readable.from(['late']));
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const acceptedSockets = new Map<number | undefined, Socket>();
  app.server.on('connection', (socket: Socket) => acceptedSockets.set(socket.remotePort, socket));
  closeFunctions.push(async () => {
    for (const socket of acceptedSockets.values()) socket.destroy();
    await app.close();
  });
  const sendUnread = async (path: string): Promise<Socket> => {
    const caller = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    await once(caller, 'connect');
    caller.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    const socket = await eventually('the connection to be accepted', () => acceptedSockets.get(caller.localPort));
    assert.ok(socket);
    await eventually('the answer to begin', () => socket.bytesWritten > 0 || socket.destroyed);
    return socket;
  };
  return { url, sendUnread, late };
}

test('closes the connection with the most unread bytes if the total number of unread bytes exceeds the limit', async () => {
  const { sendUnread } = await open({});
  const [large, small] = [await sendUnread('/text/38'), await sendUnread('/text/34')];
  await eventually('the larger to be closed', () => large.destroyed);
  assert.equal(small.destroyed, false);
});

test('does not count a streamed response whose caller has already disconnected', async () => {
  const { url, late } = await open({ streams: 1 });
  const caller = connect(Number(new URL(url).port), '127.0.0.1');
  caller.write('GET /late HTTP/1.1\r\nhost: x\r\n\r\n');
  await eventually('the request to arrive', () => late.begun);
  caller.destroy();
  await eventually('the response to be sent', () => late.sent);
  assert.equal((await fetch(`${url}/stream`)).status, 200);
});

test('closes a connection whose caller stops reading', async () => {
  const { sendUnread, url } = await open({ silenceMs: 3_000 });
  const [text, stream] = [await sendUnread('/text/20'), await sendUnread('/stream')];
  await eventually('both to be closed', () => text.destroyed && stream.destroyed);
  assert.equal((await (await fetch(`${url}/stream`)).arrayBuffer()).byteLength, 30 * MIB);
});

test('refuses streamed responses above the limit until an open stream ends', async () => {
  const { sendUnread, url } = await open({ streams: 2 });
  const [one] = [await sendUnread('/stream'), await sendUnread('/stream')];
  const refusal = await fetch(`${url}/stream`);
  assert.deepEqual([refusal.status, await refusal.text()], [429, 'rate_limited']);
  one?.destroy();
  await eventually('a place to be free', async () => (await fetch(`${url}/stream`)).status === 200);
});
