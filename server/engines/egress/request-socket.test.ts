// Reusing the read buffer must not change data that is still in use.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { pollUntil } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { RequestSocket } from './request-socket.ts';

const PIECES = ['first', 'second', 'third', 'fourth'];
const WAIT_TIMEOUT_MS = 30_000;
/** More bytes than the kernel's socket buffers hold. */
const WAITING_BYTES = 16 * 1024 * 1024;
/** The data that is read through the shared buffer. Later reads use the socket's own buffer. */
const FIRST_TEXT = 'x'.repeat(16 * 1024);

/** A RequestSocket and its peer. */
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

/** Sends the pieces one by one, each after the previous one was read. */
async function send(other: Socket, ours: RequestSocket): Promise<void> {
  for (const piece of PIECES) {
    const bytesReadBefore = ours.bytesRead;
    other.write(piece);
    await pollUntil(
      WAIT_TIMEOUT_MS,
      'a piece to be read',
      () => (ours.bytesRead > bytesReadBefore ? true : undefined),
      1,
    );
  }
}

async function sendFirst(other: Socket, ours: RequestSocket): Promise<void> {
  other.write(FIRST_TEXT);
  await pollUntil(
    WAIT_TIMEOUT_MS,
    'the first bytes to be read',
    () => (ours.bytesRead === FIRST_TEXT.length ? true : undefined),
    1,
  );
}

for (const [held, mayReuse, expected] of [
  ['still in use', false, PIECES.join()],
  ['flushed', true, 'fourth'],
] as const)
  test(`${mayReuse ? 'overwrites' : 'does not overwrite'} chunks that are ${held}`, async t => {
    const { ours, other } = await pair(t);
    const pieces: Buffer[] = [];
    ours.reuseWhen(() => mayReuse);
    ours.on('data', piece => pieces.push(piece));
    await sendFirst(other, ours);
    pieces.length = 0;
    await send(other, ours);
    const texts = pieces.map(String);
    if (mayReuse) assert.equal(texts[0], expected.slice(0, PIECES[0]?.length));
    else assert.equal(texts.join(), expected);
  });

test("does not overwrite chunks in the socket's own buffer, even if isFlushed returns true", async t => {
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

test('does not mix up the data that several sockets read into the shared buffer', async t => {
  const pairs = await Promise.all([pair(t), pair(t), pair(t)]);
  const pieces: Buffer[] = [];
  for (const { ours, other } of pairs) {
    ours.reuseWhen(() => true);
    ours.on('data', piece => pieces.push(piece));
    await send(other, ours);
  }
  assert.equal(pieces.join(), [PIECES, PIECES, PIECES].join());
});

test('keeps spliced data that the browser has not read yet while another socket reads', async t => {
  const { ours, other } = await pair(t);
  const { ours: another, other: anotherPeer } = await pair(t);
  const { ours: reader, other: browser } = await pair(t);
  const waitingBytes = Buffer.alloc(WAITING_BYTES, '-');
  browser.write(waitingBytes);
  assert.ok(browser.writableLength > 0, 'the socket buffers of the kernel are full');
  ours.spliceTo(browser, 'poured'.length, () => browser.end());
  other.write('poured');
  await pollUntil(WAIT_TIMEOUT_MS, 'the spliced data', () => (ours.bytesRead > 0 ? true : undefined), 1);
  another.resume();
  anotherPeer.write('DIFFERS');
  await pollUntil(WAIT_TIMEOUT_MS, 'the read of the other socket', () => (another.bytesRead > 0 ? true : undefined), 1);
  const got: Buffer[] = [];
  reader.on('data', piece => got.push(piece));
  await once(reader, 'end');
  assert.equal(Buffer.concat(got).subarray(waitingBytes.length).toString(), 'poured');
});
