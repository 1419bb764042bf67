// Memory that is used again must not change what somebody still holds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { RequestSocket } from './request-socket.ts';

const PIECES = ['first', 'second', 'third', 'fourth'];
const WAIT_MS = 5_000;

/** A socket of ours and the other end of it. */
async function pair(t: TestContext): Promise<{ ours: RequestSocket; other: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ours = new RequestSocket(new BigReads(1));
  ours.connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [other] = await once(server, 'connection');
  t.after(() => {
    ours.destroy();
    other.destroy();
    server.close();
  });
  return { ours, other };
}

/** Sends the pieces one by one, each once the one before has been read. */
async function send(other: Socket, ours: RequestSocket): Promise<void> {
  for (const piece of PIECES) {
    const before = ours.bytesRead;
    other.write(piece);
    await until(WAIT_MS, 'a piece to be read', () => (ours.bytesRead > before ? true : undefined), 1);
  }
}

for (const [held, reuse, expected] of [
  ['held by whoever got them', false, PIECES.join()],
  ['not held', true, 'fourth'],
] as const)
  test(`pieces that are ${held} are ${reuse ? 'overwritten' : 'left alone'}`, async t => {
    const { ours, other } = await pair(t);
    const pieces: Buffer[] = [];
    ours.reuseWhen(() => reuse);
    ours.on('data', piece => pieces.push(piece));
    await send(other, ours);
    const texts = pieces.map(String);
    if (reuse) assert.equal(texts[0], expected.slice(0, PIECES[0]?.length));
    else assert.equal(texts.join(), expected);
  });

test('pieces that wait in the socket itself are left alone, whatever those behind it say', async t => {
  const { ours, other } = await pair(t);
  ours.reuseWhen(() => true);
  ours.pause();
  for (const piece of PIECES) other.write(piece);
  other.end();
  let text = '';
  ours.on('data', piece => {
    text += piece;
  });
  ours.resume();
  await once(ours, 'end');
  assert.equal(text, PIECES.join(''));
});
