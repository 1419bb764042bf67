import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Pipe } from './pipe.ts';

const TEST_TIMEOUT_MS = 60_000;
const READ_BUFFER_BYTES = 1024 ** 2;

interface Fixture {
  readonly pipe: Pipe;
  /** Everything that the listener received, in order. `batchEnd` marks the end of a read. */
  readonly events: string[];
  /** The received messages, without those for which the listener threw. */
  readonly kept: Buffer[];
  /** Resolves when this many messages have arrived. */
  waitForMessages(count: number): Promise<string[]>;
  /** Writes text, as the browser would. */
  write(text: string): void;
  /** Reads the available bytes, as the browser would. */
  read(): string;
}

function openFixture(context: TestContext): Fixture {
  const folder = mkdtempSync(join(tmpdir(), 'berth-pipe-'));
  const [fifoIn, fifoOut] = [join(folder, 'in'), join(folder, 'out')];
  execFileSync('mkfifo', [fifoIn, fifoOut]);
  const flags = constants.O_RDWR | constants.O_NONBLOCK;
  const [readDescriptor, writeDescriptor] = [openSync(fifoIn, flags), openSync(fifoOut, flags)];
  const events: string[] = [];
  const kept: Buffer[] = [];
  const pendingChecks: Array<() => void> = [];
  const pipe = new Pipe(fifoIn, fifoOut, {
    message: message => {
      events.push(String(message));
      if (String(message).startsWith('poison')) throw new Error(String(message));
      kept.push(message);
      for (const look of pendingChecks) look();
    },
    oversized: () => assert.fail('nothing here is too large'),
    batchEnd: () => events.push('batchEnd'),
    unreadable: error => events.push(String(error)),
    failed: error => assert.fail(error),
  });
  context.after(async () => {
    await pipe.close();
    for (const descriptor of [readDescriptor, writeDescriptor]) closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });
  const messages = (): string[] => events.filter(each => each !== 'batchEnd');
  return {
    pipe,
    events,
    kept,
    waitForMessages: count =>
      new Promise(resolve => {
        const look = (): void => {
          if (messages().length >= count) resolve(messages());
        };
        pendingChecks.push(look);
        look();
      }),
    write: text => void writeSync(writeDescriptor, text),
    read: () => {
      const bytes = Buffer.alloc(READ_BUFFER_BYTES);
      return String(bytes.subarray(0, readSync(readDescriptor, bytes)));
    },
  };
}

test('delivers the messages from a single read one by one, and then reports the end of the batch', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { events, waitForMessages, write } = openFixture(context);
  write('{"a":1}\0{"b":"ä"}\0\0');
  await waitForMessages(2);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(events, ['{"a":1}', '{"b":"ä"}', 'batchEnd']);
});

test('continues to deliver messages after the listener throws', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { events, waitForMessages, write } = openFixture(context);
  write('1\0poison\0{"a":\0');
  await waitForMessages(4);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(events, ['1', 'poison', 'Error: poison', '{"a":', 'batchEnd']);
});

test('joins a message that arrives in pieces, and separates it from the next message', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { waitForMessages, write, events } = openFixture(context);
  const long = 'x'.repeat(30_000);
  for (const piece of [`${long}1`, `${long}2`, `${long}3\0short\0half`]) {
    const eventCountBefore = events.length;
    write(piece);
    while (events.length === eventCountBefore) await new Promise(resolve => setImmediate(resolve));
  }
  write(' done\0');
  assert.deepEqual(await waitForMessages(3), [`${long}1${long}2${long}3`, 'short', 'half done']);
});

test('does not change a delivered message when more bytes are read', { timeout: TEST_TIMEOUT_MS }, async context => {
  const { kept, waitForMessages, write } = openFixture(context);
  write(`${'a'.repeat(1000)}\0`);
  await waitForMessages(1);
  write(`${'b'.repeat(1000)}\0`);
  await waitForMessages(2);
  assert.deepEqual(kept.map(String), ['a'.repeat(1000), 'b'.repeat(1000)]);
});

test('writes all messages of one event loop turn together, each terminated by a NUL', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { pipe, read } = openFixture(context);
  pipe.send([Buffer.from('{"id":1'), Buffer.from('}')]);
  pipe.send([Buffer.from('{"id":2}')]);
  assert.throws(read, /EAGAIN/);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(read(), '{"id":1}\0{"id":2}\0');
});

test('sends all of a message that is larger than the FIFO, and keeps the order of all messages', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { pipe, read } = openFixture(context);
  const largeText = 'y'.repeat(300_000);
  for (const text of ['small', largeText, 'last']) pipe.send([Buffer.from(text)]);
  let all = '';
  while (!all.endsWith('last\0')) {
    await new Promise(resolve => setImmediate(resolve));
    try {
      all += read();
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('EAGAIN'))) throw error;
    }
  }
  assert.equal(all, `small\0${largeText}\0last\0`);
});

test('sends nothing after close, not even a message that was already waiting', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { pipe, read } = openFixture(context);
  pipe.send([Buffer.from('said before')]);
  await pipe.close();
  pipe.send([Buffer.from('said after')]);
  await new Promise(resolve => setImmediate(resolve));
  assert.throws(read, /EAGAIN/);
});
