import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Pipe } from './pipe.ts';

const END_MS = 60_000;
const READ_BYTES = 1024 ** 2;

interface World {
  readonly pipe: Pipe;
  /** What the browser has written, in order; `rest` marks the end of a read. */
  readonly heard: string[];
  /** The messages themselves. */
  readonly kept: Buffer[];
  /** Resolves when that many messages came. */
  messages(count: number): Promise<string[]>;
  /** Writes as the browser. */
  write(text: string): void;
  /** One read as the browser: the bytes that are there. */
  read(): string;
}

function openWorld(context: TestContext): World {
  const folder = mkdtempSync(join(tmpdir(), 'berth-pipe-'));
  const [fifoIn, fifoOut] = [join(folder, 'in'), join(folder, 'out')];
  execFileSync('mkfifo', [fifoIn, fifoOut]);
  const flags = constants.O_RDWR | constants.O_NONBLOCK;
  const [reading, writing] = [openSync(fifoIn, flags), openSync(fifoOut, flags)];
  const heard: string[] = [];
  const kept: Buffer[] = [];
  const waiting: Array<() => void> = [];
  const pipe = new Pipe(fifoIn, fifoOut, {
    message: message => {
      heard.push(String(message));
      if (String(message).startsWith('poison')) throw new Error(String(message));
      kept.push(message);
      for (const look of waiting) look();
    },
    oversized: () => assert.fail('nothing here is too large'),
    rest: () => heard.push('rest'),
    unreadable: error => heard.push(String(error)),
    failed: error => assert.fail(error),
  });
  context.after(async () => {
    await pipe.close();
    for (const descriptor of [reading, writing]) closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });
  const messages = (): string[] => heard.filter(each => each !== 'rest');
  return {
    pipe,
    heard,
    kept,
    messages: count =>
      new Promise(resolve => {
        const look = (): void => {
          if (messages().length >= count) resolve(messages());
        };
        waiting.push(look);
        look();
      }),
    write: text => void writeSync(writing, text),
    read: () => {
      const bytes = Buffer.alloc(READ_BYTES);
      return String(bytes.subarray(0, readSync(reading, bytes)));
    },
  };
}

test('messages of one read come one by one, then the rest', { timeout: END_MS }, async context => {
  const { heard, messages, write } = openWorld(context);
  write('{"a":1}\0{"b":"ä"}\0\0');
  await messages(2);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(heard, ['{"a":1}', '{"b":"ä"}', 'rest']);
});

test('a message that the listener throws on ends there, and those behind it come', {
  timeout: END_MS,
}, async context => {
  const { heard, messages, write } = openWorld(context);
  write('1\0poison\0{"a":\0');
  await messages(4);
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(heard, ['1', 'poison', 'Error: poison', '{"a":', 'rest']);
});

test('a message that comes in pieces is put together, and the next is not mixed into it', {
  timeout: END_MS,
}, async context => {
  const { messages, write, heard } = openWorld(context);
  const long = 'x'.repeat(30_000);
  for (const piece of [`${long}1`, `${long}2`, `${long}3\0short\0half`]) {
    const reads = heard.length;
    write(piece);
    while (heard.length === reads) await new Promise(resolve => setImmediate(resolve));
  }
  write(' done\0');
  assert.deepEqual(await messages(3), [`${long}1${long}2${long}3`, 'short', 'half done']);
});

test('what was handed on stays as it was when more is read', { timeout: END_MS }, async context => {
  const { kept, messages, write } = openWorld(context);
  write(`${'a'.repeat(1000)}\0`);
  await messages(1);
  write(`${'b'.repeat(1000)}\0`);
  await messages(2);
  assert.deepEqual(kept.map(String), ['a'.repeat(1000), 'b'.repeat(1000)]);
});

test('all that is said in one turn leaves in one write, each message with its NUL', {
  timeout: END_MS,
}, async context => {
  const { pipe, read } = openWorld(context);
  pipe.send([Buffer.from('{"id":1'), Buffer.from('}')]);
  pipe.send([Buffer.from('{"id":2}')]);
  assert.throws(read, /EAGAIN/);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(read(), '{"id":1}\0{"id":2}\0');
});

test('a message larger than the FIFO arrives whole, behind and before small ones', {
  timeout: END_MS,
}, async context => {
  const { pipe, read } = openWorld(context);
  const large = 'y'.repeat(300_000);
  for (const text of ['small', large, 'last']) pipe.send([Buffer.from(text)]);
  let all = '';
  while (!all.endsWith('last\0')) {
    await new Promise(resolve => setImmediate(resolve));
    try {
      all += read();
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('EAGAIN'))) throw error;
    }
  }
  assert.equal(all, `small\0${large}\0last\0`);
});

test('after close nothing is sent', { timeout: END_MS }, async context => {
  const { pipe, read } = openWorld(context);
  pipe.send([Buffer.from('said before')]);
  await pipe.close();
  pipe.send([Buffer.from('said after')]);
  await new Promise(resolve => setImmediate(resolve));
  assert.throws(read, /EAGAIN/);
});
