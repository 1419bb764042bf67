import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { frameHeader, textFrames } from './frame.ts';

const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000];
const textOf = (length: number): string => 'ä'.repeat(length >> 1) + 'x'.repeat(length % 2);

/** The messages that a client of the `ws` package receives when these bytes are written to its connection. */
async function receiveMessages(bytes: Buffer, count: number): Promise<string[]> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (_, request) => request.socket.write(bytes));
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  const messages: string[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      client.on('error', reject);
      client.on('close', () => reject(new Error(`closed after ${messages.length} messages`)));
      client.on('message', (data, binary) => {
        assert.equal(binary, false);
        if (messages.push(String(data)) === count) resolve();
      });
    });
  } finally {
    client.terminate();
    server.close();
    await once(server, 'close');
  }
  return messages;
}

test('a client receives messages of every length in order from one buffer of frames', async () => {
  const texts = LENGTHS.map(textOf);
  assert.deepEqual(await receiveMessages(textFrames(texts.map(text => Buffer.from(text))), texts.length), texts);
});

test('a client receives messages of every length if frameHeader creates their headers', async () => {
  const texts = LENGTHS.map(textOf);
  const parts = texts.flatMap(text => [frameHeader(Buffer.byteLength(text)), Buffer.from(text)]);
  assert.deepEqual(await receiveMessages(Buffer.concat(parts), texts.length), texts);
});

test('frameHeader encodes a length of more than 32 bits in 64 bits', () => {
  assert.equal(frameHeader(2 ** 33 + 5).toString('hex'), '817f0000000200000005');
});
