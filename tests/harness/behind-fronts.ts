// Runs the server of a test as the only host with browsers in a fleet. BERTH_TEST_FRONTS=2 starts two fronts beside the
// server. All three share one PostgreSQL and one bucket, and each new connection from the test goes to the next of
// them. Tests written for one server thus run against a fleet unchanged.
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { after } from 'node:test';
import { Scope } from '../../server/kit/scope.ts';
import { startForeignServer } from '../engines/store-fixtures.ts';
import { claimFreePort } from './free-port.ts';
import { startS3 } from './s3.ts';

const FRONT_COUNT = Number(process.env.BERTH_TEST_FRONTS ?? 0);

type Env = Readonly<Record<string, string | undefined>>;

/** The options of a server that are inspected here. */
interface InspectedOptions {
  readonly env?: Env;
  readonly clock?: 'real' | 'test';
  readonly isMeasured?: boolean;
  readonly dataDir?: unknown;
  readonly user?: unknown;
  readonly installedRelease?: unknown;
  readonly namespaceAccess?: unknown;
}

interface Startable {
  readonly key: string;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The options that are added here to those of the test. */
interface AddedOptions {
  readonly env: Env;
  readonly namespaceAccess: { readonly command: readonly string[]; readonly url: string };
  readonly key?: string;
}

/**
 * Whether the server of a test may be started behind fronts, because the test does not prescribe how the server is
 * started. A test clock is excluded, because a host would lose its lease when the clock is advanced.
 */
export const mayHaveFronts = ({
  dataDir,
  user,
  env = {},
  clock,
  isMeasured,
  installedRelease,
  namespaceAccess,
}: InspectedOptions): boolean =>
  FRONT_COUNT > 0 &&
  ![dataDir, user, installedRelease, namespaceAccess, env.DATABASE_URL, env.BERTH_PROCESSES, env.BERTH_PUBLIC_URL].some(
    Boolean,
  ) &&
  clock !== 'test' &&
  !isMeasured;

export async function startBehindFronts<Server extends Startable>(
  testEnv: Env | undefined,
  make: (addedOptions: AddedOptions, port: number) => Server,
): Promise<Server> {
  const scope = new Scope();
  const [database, store] = await Promise.all([startForeignServer(scope), startS3()]);
  scope.defer(() => store.close());
  const ports: number[] = [];
  const url = await openRoundRobin(ports, scope);
  const sharedEnv = {
    ...{ DATABASE_URL: database.url.reveal(), BERTH_SECRET: randomBytes(32).toString('hex') },
    ...{ BERTH_MASTER_KEY: randomBytes(32).toString('hex'), BERTH_PUBLIC_URL: url },
    ...{ ...store.env, ...testEnv },
  };
  const start = async (hostEnv: Env, key?: string): Promise<Server> => {
    const port = await claimFreePort();
    const env = { ...sharedEnv, ...hostEnv, BERTH_LISTEN: `127.0.0.1:${port}` };
    const server = make({ env, namespaceAccess: { command: [], url }, ...(key === undefined ? {} : { key }) }, port);
    after(() => server.close());
    ports.push(port);
    await server.start();
    return server;
  };
  const server = await start({});
  for (let front = 0; front < FRONT_COUNT; front += 1) await start({ BERTH_SLOTS: '0', BERTH_WARM: '0' }, server.key);
  // The scope is closed last, because hosts need the database to shut down.
  after(() => scope.close());
  return server;
}

/**
 * Passes each new connection to the next port. A port that refuses the connection, because its host restarts, is
 * skipped.
 */
async function openRoundRobin(ports: readonly number[], scope: Scope): Promise<string> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  let nextIndex = 0;
  const connectNext = (socket: Socket, triesLeft: number): void => {
    const upstream = connect(ports[nextIndex++ % ports.length] ?? 0, '127.0.0.1');
    keep(upstream);
    socket.once('close', () => upstream.destroy());
    upstream.once('error', () => {
      const hasServed = upstream.bytesRead > 0 || upstream.readyState.startsWith('open');
      if (!hasServed && triesLeft > 0 && !socket.destroyed) connectNext(socket, triesLeft - 1);
      else socket.destroy();
    });
    upstream.once('connect', () => {
      upstream.once('close', () => socket.destroy());
      socket.pipe(upstream);
      upstream.pipe(socket);
    });
  };
  const proxyServer = createServer({ pauseOnConnect: true }, socket => {
    keep(socket);
    socket.on('error', () => {});
    connectNext(socket, ports.length);
  });
  await new Promise<void>(resolve => proxyServer.listen(0, '127.0.0.1', resolve));
  scope.defer(() => {
    for (const socket of sockets) socket.destroy();
    proxyServer.close();
  });
  const address = proxyServer.address();
  if (address === null || typeof address === 'string')
    throw new Error('the proxy has no port, because its server is not listening');
  return `http://127.0.0.1:${address.port}`;
}
