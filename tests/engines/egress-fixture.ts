// The fixture of the egress tests: a proxy on loopback with the rules of one session, servers behind it, and a real
// curl.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { AddressRange } from '../../server/engines/egress/address.ts';
import { type Egress, type EgressOptions, openEgress } from '../../server/engines/egress/egress.ts';
import { egressPolicy } from '../../server/engines/egress/policy.ts';
import { createResolver } from '../../server/engines/egress/resolve.ts';
import { createThisMachine } from '../../server/engines/egress/this-machine.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { withTimeout } from '../../server/kit/wait.ts';

export const WAIT_TIMEOUT_MS = 30_000;

export interface Fixture {
  readonly egress: Egress;
  readonly server: Server;
  readonly proxyPort: number;
  readonly proxyUrl: string;
}

export interface FixtureOptions extends Partial<EgressOptions> {
  /** Loopback ports that the operator has allowed. */
  readonly ports?: readonly number[];
  readonly hosts?: Readonly<Record<string, string>>;
}

export const loopbackRange = (port: number): AddressRange => ({ address: '127.0.0.1', prefix: 32, family: 4, port });

export const policyForPorts = (ports: readonly number[]) =>
  egressPolicy({ allow: ports.map(loopbackRange), machine: createThisMachine({ listeners: [], clock: systemClock }) });

export async function openFixture(
  t: TestContext,
  { ports = [], hosts = {}, ...options }: FixtureOptions = {},
): Promise<Fixture> {
  const server = createServer();
  const proxyPort = await listen(t, server);
  const clock = options.clock ?? systemClock;
  const egress = openEgress({
    server,
    policy: policyForPorts(ports),
    resolve: createResolver({ hosts: new Map(Object.entries({ 'a.test': '127.0.0.1', ...hosts })), clock }),
    log: silentLog,
    clock,
    ...options,
  });
  t.after(() => egress.close());
  return { egress, server, proxyPort, proxyUrl: `http://127.0.0.1:${proxyPort}` };
}

/** Listens on loopback until the test ends, and then closes all its sockets. */
export async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

export interface CurlResult {
  readonly code: number;
  readonly out: Buffer;
  readonly err: string;
}

const OUT_BYTES_MAX = 256 * 1024 * 1024;

export function curl(fixture: Fixture, ...args: readonly string[]): Promise<CurlResult> {
  return new Promise(done => {
    execFile(
      'curl',
      ['-q', '-sS', '--globoff', '--max-time', '60', '--noproxy', '', '--proxy', fixture.proxyUrl, ...args],
      { encoding: 'buffer', maxBuffer: OUT_BYTES_MAX },
      (error, out, err) => done({ code: error ? Number(error.code) : 0, out, err: err.toString() }),
    );
  });
}

const HEAD_END = '\r\n\r\n';

/** A connection that a test opens in place of a browser. Collects all bytes that it receives. */
export class RawConnection {
  readonly socket: Socket;
  readonly #parts: Buffer[] = [];
  #error: NodeJS.ErrnoException | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', part => this.#parts.push(part));
    socket.on('error', error => {
      this.#error = error;
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const connection = new RawConnection(socket);
    // A failed test must not keep the process running.
    socket.unref();
    await once(socket, 'connect');
    return connection;
  }

  static async tunnel(fixture: Fixture, authority: string): Promise<RawConnection> {
    const connection = await RawConnection.open(fixture.proxyPort);
    connection.socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const head = await connection.waitForText(HEAD_END);
    if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`the proxy did not open the tunnel: ${head}`);
    connection.#parts.splice(
      0,
      connection.#parts.length,
      connection.bytes.subarray(head.indexOf(HEAD_END) + HEAD_END.length),
    );
    return connection;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  get text(): string {
    return this.bytes.toString('latin1');
  }

  get error(): string | undefined {
    return this.#error?.code;
  }

  /** Waits until the received bytes contain this string, and returns everything that was received. */
  async waitForText(wanted: string): Promise<string> {
    await this.#waitUntil(() => this.text.includes(wanted), `"${wanted}" from the proxy`);
    return this.text;
  }

  async waitForBytes(count: number): Promise<Buffer> {
    let seen = 0;
    await this.#waitUntil(() => {
      seen = this.#parts.reduce((sum, part) => sum + part.length, 0);
      return seen >= count;
    }, `${count} bytes from the proxy`);
    return this.bytes;
  }

  waitForEnd(): Promise<void> {
    return this.#waitUntil(() => this.socket.readableEnded || this.socket.destroyed, 'the end of a connection');
  }

  waitForClose(): Promise<void> {
    return this.#waitUntil(() => this.socket.destroyed, 'the connection to close');
  }

  async #waitUntil(done: () => boolean, what: string): Promise<void> {
    const { socket } = this;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (done()) resolve();
    };
    for (const event of ['data', 'end', 'close']) socket.on(event, look);
    look();
    try {
      await withTimeout(WAIT_TIMEOUT_MS, what, () => promise);
    } finally {
      for (const event of ['data', 'end', 'close']) socket.off(event, look);
    }
  }
}
