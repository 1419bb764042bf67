// Large bodies of plain answers, which leave the HTTP client for a shorter way: the browser must not be able to tell.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '../../server/kit/wait.ts';
import { listen, openWorld, portsOpen, WAIT_MS, Wire, type World, type WorldWish } from './egress-world.ts';

const MIB = 1024 * 1024;
const LARGE = randomBytes(6 * MIB + 12_345);
const HEAD_END = '\r\n\r\n';

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const head = (bytes: number, more = ''): string => `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n${more}\r\n`;

interface Outside {
  readonly world: World;
  readonly port: number;
  /** Of each connection, in the order in which they came: the requests, by their first lines. */
  readonly asked: readonly string[][];
}

/** An outside that answers each request by `answer`, and may do with its connection what it likes. */
async function outside(
  t: TestContext,
  answer: (socket: Socket, path: string) => void,
  wish: WorldWish = {},
): Promise<Outside> {
  const asked: string[][] = [];
  const server = createServer(socket => {
    const lines: string[] = [];
    asked.push(lines);
    socket.on('error', () => {});
    socket.on('data', data => {
      for (const [, line = '', path = ''] of String(data).matchAll(/^((?:GET|HEAD) (\S+)) HTTP/gm)) {
        lines.push(line);
        answer(socket, path);
      }
    });
  });
  const port = await listen(t, server);
  return { world: await openWorld(t, { ports: [port], ...wish }), port, asked };
}

const large = (socket: Socket): void => {
  socket.write(head(LARGE.length));
  socket.write(LARGE);
};

const asks = (port: number, path: string, method = 'GET'): string =>
  `${method} http://a.test:${port}${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;

const nothingOpen = (world: World): Promise<true> =>
  until(WAIT_MS, 'the outside to be closed', () => (world.egress.counters().connectionsOpen === 0 ? true : undefined));

/** What came behind the first head, once there are so many bytes of it. */
async function bodyOf(wire: Wire, bytes: number): Promise<Buffer> {
  const text = await wire.until(HEAD_END);
  const start = text.indexOf(HEAD_END) + HEAD_END.length;
  return (await wire.bytesOf(start + bytes)).subarray(start, start + bytes);
}

test('it arrives byte for byte, is counted exactly, and the connection of the browser serves on', async t => {
  const { world, port, asked } = await outside(t, (socket, path) =>
    path === '/large' ? large(socket) : socket.write(`${head(2)}ok`),
  );
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/large'));
  assert.equal(sha(await bodyOf(wire, LARGE.length)), sha(LARGE));
  await nothingOpen(world);
  const { bytesDown, connections } = world.egress.counters();
  assert.deepEqual([bytesDown, connections], [head(LARGE.length).length + LARGE.length, 1]);
  wire.socket.write(asks(port, '/small'));
  await wire.until(`${HEAD_END}ok`);
  assert.deepEqual(asked, [['GET /large'], ['GET /small']]);
  wire.socket.destroy();
});

test('the same in a head and pieces of every kind', async t => {
  const sizes = [1, 10, 16_000, 70_000, 600_000, 3, 2 * MIB, LARGE.length];
  const { world, port } = await outside(t, async socket => {
    const whole = Buffer.concat([Buffer.from(head(LARGE.length)), LARGE]);
    let from = 0;
    for (const size of sizes) {
      if (!socket.write(whole.subarray(from, from + size))) await new Promise(done => socket.once('drain', done));
      await new Promise(done => setImmediate(done));
      from += size;
    }
    socket.write(whole.subarray(from));
  });
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/'));
  assert.equal(sha(await bodyOf(wire, LARGE.length)), sha(LARGE));
  wire.socket.destroy();
});

test('with no room for large pieces it is as whole as with it, and room that was had comes back', async t => {
  for (const bigReadsMax of [0, 1]) {
    const { world, port } = await outside(t, large, { limits: { bigReadsMax } });
    for (let time = 0; time < 2; time++) {
      const wires = await Promise.all([1, 2].map(() => Wire.open(world.proxyPort)));
      for (const wire of wires) wire.socket.write(asks(port, '/'));
      for (const wire of wires) assert.equal(sha(await bodyOf(wire, LARGE.length)), sha(LARGE));
      for (const wire of wires) wire.socket.destroy();
    }
  }
});

test('what an outside says beyond the length it promised reaches nobody', async t => {
  const { world, port } = await outside(t, (socket, path) => {
    if (path !== '/large') return void socket.write(`${head(2)}ok`);
    large(socket);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled');
  });
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/large'));
  await bodyOf(wire, LARGE.length);
  wire.socket.write(asks(port, '/small'));
  await wire.until(`${HEAD_END}ok`);
  assert.ok(!wire.text.includes('smuggled'));
  wire.socket.destroy();
});

for (const [how, breakOff] of [
  ['ends', (socket: Socket) => void socket.end()],
  ['resets', (socket: Socket) => void socket.resetAndDestroy()],
] as const)
  test(`an outside that ${how} in the middle breaks the connection of the browser off, never ends it well`, async t => {
    const half = LARGE.subarray(0, LARGE.length / 2);
    const { world, port } = await outside(t, socket => {
      socket.write(head(LARGE.length));
      socket.write(half);
      void until(WAIT_MS, 'half of it to be through', () =>
        world.egress.counters().bytesDown > half.length ? true : undefined,
      ).then(() => breakOff(socket));
    });
    const wire = await Wire.open(world.proxyPort);
    wire.socket.write(asks(port, '/'));
    await wire.ended();
    assert.ok(wire.bytes.length < head(LARGE.length).length + LARGE.length);
    await nothingOpen(world);
  });

test('a head without a body, however long the body would be, is followed by the next answer', async t => {
  const { world, port } = await outside(t, (socket, path) =>
    socket.write(path === '/last' ? `${head(2)}ok` : head(LARGE.length)),
  );
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/', 'HEAD'));
  await wire.until(HEAD_END);
  wire.socket.write(asks(port, '/last'));
  await wire.until(`${HEAD_END}ok`);
  wire.socket.destroy();
});

test('answers to requests in a row keep their order, also where the first is the last to come', async t => {
  // Each has a connection of its own: which of them is heard first is not said.
  const largeSent = Promise.withResolvers<void>();
  const { world, port } = await outside(t, (socket, path) => {
    if (path === '/last') return void socket.write(`${head(4)}last`);
    if (path === '/first') return void largeSent.promise.then(() => socket.write(`${head(5)}first`));
    large(socket);
    largeSent.resolve();
  });
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/first') + asks(port, '/large') + asks(port, '/last'));
  await wire.bytesOf(LARGE.length);
  const all = await wire.until(`${HEAD_END}last`);
  const first = all.indexOf(`${HEAD_END}first`) + HEAD_END.length + 'first'.length;
  const start = all.indexOf(HEAD_END, first) + HEAD_END.length;
  assert.equal(sha(wire.bytes.subarray(start, start + LARGE.length)), sha(LARGE));
  wire.socket.destroy();
});

const endless = Buffer.alloc(MIB);

function pourEndlessly(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(endless));
  };
  socket.on('drain', more);
  socket.write(head(Number.MAX_SAFE_INTEGER));
  more();
}

test('a policy that is replaced ends it', async t => {
  const { world, port } = await outside(t, pourEndlessly);
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/'));
  await wire.bytesOf(MIB);
  world.egress.replacePolicy(portsOpen([]));
  await wire.ended();
  await nothingOpen(world);
});

test('a browser that leaves lets go of the outside', async t => {
  const { world, port } = await outside(t, pourEndlessly);
  const wire = await Wire.open(world.proxyPort);
  wire.socket.write(asks(port, '/'));
  await wire.bytesOf(MIB);
  wire.socket.destroy();
  await nothingOpen(world);
});

/** What the kernel keeps on both sides of us; ours is at most one large piece. */
const KERNEL_BYTES_MAX = 40 * MIB;

for (const way of ['a plain answer', 'a tunnel'])
  test(`a reader that stops holds the sender of ${way} up instead of filling our memory, and gets all when it goes on`, async t => {
    const { world, port } = await outside(t, pourEndlessly);
    const plain = way === 'a plain answer';
    const wire = plain ? await Wire.open(world.proxyPort) : await Wire.tunnel(world, `a.test:${port}`);
    wire.socket.write(plain ? asks(port, '/') : 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
    // So that it is on the short way, in large pieces, when it stops.
    await wire.bytesOf(8 * MIB);
    wire.socket.pause();
    const before = process.memoryUsage().arrayBuffers;
    let last = -1;
    const standing = await until(
      WAIT_MS,
      'the flow to stand still',
      () => {
        const now = world.egress.counters().bytesDown;
        const still = now === last;
        last = now;
        return still ? now : undefined;
      },
      150,
    );
    const taken = standing - wire.socket.bytesRead;
    assert.ok(taken < KERNEL_BYTES_MAX, `${taken} bytes were taken`);
    assert.ok(process.memoryUsage().arrayBuffers - before < KERNEL_BYTES_MAX);
    wire.socket.resume();
    await wire.bytesOf(standing + MIB);
    wire.socket.destroy();
    await nothingOpen(world);
  });
