// How large pieces get, and for how many connections at once. That bytes stay whole is the business of the engine's suites.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { Downstream } from './downstream.ts';

const WAIT_MS = 30_000;
const SMALL_BYTES = 64 * 1024;
const BIG_BYTES = 512 * 1024;

/** A socket whose other end reads all, or nothing. */
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

/** As many pieces as are asked for arrive, each as large as there is room for it. */
async function fill(down: Downstream, pieces: number, socket: Socket): Promise<void> {
  for (let piece = 0; piece < pieces; piece++) {
    down.arrived(down.buffer);
    await until(WAIT_MS, 'a piece to be with the kernel', () => (socket.writableLength === 0 ? true : undefined), 1);
  }
}

test('pieces grow while they fill the buffer, up to a bound', async t => {
  const socket = await browser(t);
  const down = new Downstream(new BigReads(1));
  down.open(socket, () => {});
  const first = down.buffer.length;
  down.arrived(down.buffer.subarray(1));
  assert.equal(down.buffer.length, first, 'one that left room is no reason to grow');
  await fill(down, 40, socket);
  assert.equal(down.buffer.length, BIG_BYTES);
});

test('so many connections as may have large pieces; the others have small ones until there is room', async t => {
  const bigReads = new BigReads(1);
  const sockets = [await browser(t), await browser(t)] as const;
  const downs = [new Downstream(bigReads), new Downstream(bigReads)] as const;
  for (const at of [0, 1] as const) {
    downs[at].open(sockets[at], () => {});
    await fill(downs[at], 40, sockets[at]);
  }
  assert.deepEqual(
    downs.map(({ buffer }) => buffer.length),
    [BIG_BYTES, SMALL_BYTES],
  );
  downs[0].close();
  downs[0].close();
  await fill(downs[1], 40, sockets[1]);
  assert.equal(downs[1].buffer.length, BIG_BYTES);
  assert.equal(bigReads.take(), false, 'one that is closed twice gives back once');
});

test('a browser that does not read stops it, and what waits is not read over', async t => {
  const socket = await browser(t, false);
  const down = new Downstream(new BigReads(1));
  let wentOn = 0;
  down.open(socket, () => {
    wentOn += 1;
  });
  let pieces = 0;
  while (down.arrived(down.buffer)) pieces += 1;
  assert.ok(pieces > 0);
  assert.equal(wentOn, 0);
  assert.ok(socket.writableLength > 0 && socket.writableLength <= BIG_BYTES);
});
