// Several hosts that share one PostgreSQL and one bucket. Each host is a separate server with its own data folder. A
// proxy passes each new connection to the next host.
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { after } from 'node:test';
import pg from 'pg';
import { Scope } from '../../server/kit/scope.ts';
import { type ForeignServer, startForeignServer } from '../engines/store-fixtures.ts';
import type { Pages } from './pages.ts';
import { type S3Store, startS3 } from './s3.ts';
import { startServer, type TestServer } from './server.ts';

export interface TestFleet {
  readonly hosts: readonly [TestServer, TestServer, ...TestServer[]];
  readonly database: ForeignServer;
  readonly store: S3Store;
  /** The settings that all hosts share. */
  readonly env: Readonly<Record<string, string>>;
  /** The address of the proxy. */
  readonly url: string;
  readonly key: string;
  /** The connections of the first host to the database. `cut` closes them and refuses new ones until `mend`. */
  readonly link: DatabaseLink;
}

/** Runs a statement on the fleet's database and returns the rows. */
export async function runStatement({ database }: TestFleet, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: database.url.reveal() });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

export interface DatabaseLink {
  cut(): void;
  mend(): void;
}

export interface FleetOptions {
  readonly pages?: Pages;
  readonly env?: Readonly<Record<string, string>>;
  /** The number of slots of each host. */
  readonly slots?: readonly number[];
  /**
   * The release that the first host runs instead of the source tree. `command` is read at each start of the host, so a
   * test can change it.
   */
  readonly installed?: { command?: string };
  /** Settings of the second host only. */
  readonly secondEnv?: Readonly<Record<string, string>>;
}

export async function startFleet({
  pages,
  env = {},
  slots = [3, 3],
  installed,
  secondEnv = {},
}: FleetOptions = {}): Promise<TestFleet> {
  const scope = new Scope();
  const hosts: TestServer[] = [];
  // The hosts are closed first, because they need the database while they stop.
  after(async () => {
    for (const host of hosts) await host.close();
    await scope.close();
  });
  const [database, store] = await Promise.all([startForeignServer(scope), startS3()]);
  scope.defer(() => store.close());
  const sharedEnv = {
    ...{ DATABASE_URL: database.url.reveal(), BERTH_SECRET: randomBytes(32).toString('hex') },
    ...{ BERTH_MASTER_KEY: randomBytes(32).toString('hex'), ...store.env, ...env },
  };
  const link = await openLink(database.url.reveal(), scope);
  for (const slotCount of slots) {
    const key = hosts[0]?.key;
    const firstOptions = installed && hosts.length === 0 ? { installedRelease: installed, isMeasured: true } : {};
    const options = { ...(pages ? { pages } : {}), ...(key === undefined ? {} : { key }), ...firstOptions };
    hosts.push(
      await startServer({
        ...options,
        env: {
          ...sharedEnv,
          ...([{ DATABASE_URL: link.url }, secondEnv][hosts.length] ?? {}),
          BERTH_SLOTS: String(slotCount),
        },
      }),
    );
  }
  const [first, second, ...more] = hosts;
  if (!first || !second) throw new Error('a fleet needs at least two hosts; pass two numbers or more in slots');
  const url = await openRoundRobin(hosts, scope);
  return { hosts: [first, second, ...more], database, store, env: sharedEnv, url, key: first.key, link };
}

async function openRoundRobin(hosts: readonly TestServer[], scope: Scope): Promise<string> {
  let nextIndex = 0;
  const nextPort = (): number => Number(new URL(hosts[nextIndex++ % hosts.length]?.url ?? '').port);
  const { port } = await openProxyTo(nextPort, scope);
  return `http://127.0.0.1:${port}`;
}

async function openLink(databaseUrl: string, scope: Scope): Promise<DatabaseLink & { readonly url: string }> {
  const database = new URL(databaseUrl);
  let isCut = false;
  const port = Number(database.port);
  const proxy = await openProxyTo(() => (isCut ? undefined : port), scope);
  database.port = String(proxy.port);
  const cut = (): void => {
    isCut = true;
    proxy.dropAll();
  };
  const mend = (): void => {
    isCut = false;
  };
  return { url: database.href, cut, mend };
}

interface Proxy {
  readonly port: number;
  dropAll(): void;
}

/** Passes connections on to the port. While the port is undefined, connections are dropped. */
async function openProxyTo(port: () => number | undefined, scope: Scope): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    const targetPort = port();
    if (targetPort === undefined) return void socket.destroy();
    const upstream = connect(targetPort, '127.0.0.1');
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.once('close', () => sockets.delete(one));
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const dropAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  scope.defer(() => {
    dropAll();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the proxy has no port, because its server is not listening');
  return { port: address.port, dropAll };
}

/** Returns `address` with its host name and port replaced by those of `url`. */
export const addressAt = ({ url }: { readonly url: string }, address: string): string => {
  const [targetUrl, movedUrl] = [new URL(url), new URL(address)];
  movedUrl.host = targetUrl.host;
  return movedUrl.href;
};
