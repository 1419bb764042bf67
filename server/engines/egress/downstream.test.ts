// Tests the size of the read buffer and the number of large buffers. tests/engines/ checks that bytes arrive unchanged.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { pollUntil } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { Downstream } from './downstream.ts';

const WAIT_TIMEOUT_MS = 30_000;
const SMALL_BYTES = 64 * 1024;
const BIG_BYTES = 512 * 1024;

/** Returns a socket whose other end reads everything, or nothing if `reads` is false. */
async function browser(t: TestContext, reads = true): Promise<Socket> {
  const server = createServer(socket => (reads ? socket.resume() : socket.pause())).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [[other]] = await Promise.all([once(server, 'connection'), once(socket, 'connect')]);
  t.after(() => {
    socket.destroy();
    other.destroy();
    server.close();
  });
  return socket;
}

/** Writes `pieces` chunks, each as large as the buffer. */
async function fill(downstream: Downstream, pieces: number, socket: Socket): Promise<void> {
  for (let piece = 0; piece < pieces; piece++) {
    downstream.write(downstream.buffer);
    await pollUntil(
      WAIT_TIMEOUT_MS,
      'the kernel to take a chunk',
      () => (socket.writableLength === 0 ? true : undefined),
      1,
    );
  }
}

test('grows the buffer up to 512 KiB while reads fill the whole buffer', async t => {
  const socket = await browser(t);
  const downstream = new Downstream(new BigReads(1));
  downstream.open(socket, () => {});
  const firstLength = downstream.buffer.length;
  downstream.write(downstream.buffer.subarray(1));
  assert.equal(downstream.buffer.length, firstLength, 'a read that does not fill the buffer must not grow it');
  await fill(downstream, 40, socket);
  assert.equal(downstream.buffer.length, BIG_BYTES);
});

test('limits the number of large buffers, and gives a connection a small buffer until a large buffer is free', async t => {
  const bigReads = new BigReads(1);
  const sockets = [await browser(t), await browser(t)] as const;
  const downstreams = [new Downstream(bigReads), new Downstream(bigReads)] as const;
  for (const at of [0, 1] as const) {
    downstreams[at].open(sockets[at], () => {});
    await fill(downstreams[at], 40, sockets[at]);
  }
  assert.deepEqual(
    downstreams.map(({ buffer }) => buffer.length),
    [BIG_BYTES, SMALL_BYTES],
  );
  downstreams[0].close();
  downstreams[0].close();
  await fill(downstreams[1], 40, sockets[1]);
  assert.equal(downstreams[1].buffer.length, BIG_BYTES);
  assert.equal(bigReads.acquire(), false, 'a second close must not release again');
});

test('stops reading if the browser does not read, and holds at most 512 KiB of unsent data', async t => {
  const socket = await browser(t, false);
  const downstream = new Downstream(new BigReads(1));
  let continueCount = 0;
  downstream.open(socket, () => {
    continueCount += 1;
  });
  let writtenPieces = 0;
  while (downstream.write(downstream.buffer)) writtenPieces += 1;
  assert.ok(writtenPieces > 0);
  assert.equal(continueCount, 0);
  assert.ok(socket.writableLength > 0 && socket.writableLength <= BIG_BYTES);
});
