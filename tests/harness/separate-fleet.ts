// A fleet as `npm run fleet` starts it: three hosts, each in its own network namespace, one PostgreSQL and one S3 store
// in namespaces of their own, and a proxy that passes each new connection to the next host that accepts it. A test can
// disconnect each host and the store, and block the responses of the database to a host. Needs root.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { commandInNamespace, type Member, makeNetwork, type Network } from '../../tools/fleet/network.ts';
import { Programs } from '../../tools/fleet/programs.ts';
import { type Relay, relay } from '../../tools/fleet/relay.ts';
import { type Database, startDatabase, startStore } from '../../tools/fleet/shared-parts.ts';
import { LIGHT_ENGINE } from './engine.ts';
import type { Pages } from './pages.ts';
import { startServer, type TestServer } from './server.ts';

const RELAY_PROGRAM = join(import.meta.dirname, '../../tools/fleet/relay-program.ts');
const OUTPUT_LINES_SHOWN = 20;
export const REGIONS = ['one', 'two', 'three'] as const;
export type Region = (typeof REGIONS)[number];
type Triple<T> = readonly [T, T, T];

export interface SeparateFleet {
  /** Each host has a region of its own, which is the first name in its `BERTH_REGION`. */
  readonly hosts: Triple<TestServer>;
  /** The public address, which is the address of the proxy. */
  readonly url: string;
  readonly key: string;
  readonly database: Database;
  /** Unplugs the host or the store from the network, or plugs it in again. */
  setPlugged(what: TestServer | 'store', isPlugged: boolean): void;
  /** Sets whether responses of the database reach the host. */
  setDatabaseReaches(host: TestServer, isReachable: boolean): void;
}

export interface SeparateFleetOptions {
  readonly pages: Pages;
  readonly slots: Triple<number>;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startSeparateFleet({ pages, slots, env = {} }: SeparateFleetOptions): Promise<SeparateFleet> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-apart-'));
  const outputLines: string[] = [];
  const programs = new Programs({
    onLine: (name, line) => void outputLines.push(`${name}  ${line}`),
    onLost: (name, code) =>
      console.error(`${name} ended with ${code}\n${outputLines.slice(-OUTPUT_LINES_SHOWN).join('\n')}`),
  });
  const network = makeNetwork(`t${process.pid}`, ['h1', 'h2', 'h3', 'db', 's3', 'lb']);
  const relays: Relay[] = [];
  const hosts: TestServer[] = [];
  const cleanUp = (): void => {
    programs.killAll();
    network.remove();
  };
  process.once('exit', cleanUp);
  after(async () => {
    for (const host of hosts) await host.close();
    for (const one of relays) one.close();
    await programs.endAll();
    network.remove();
    process.off('exit', cleanUp);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const [h1, h2, h3, db, s3, lb] = membersOf(network);
  const sharedOptions = {
    programs,
    folder,
    env: { PATH: process.env.PATH ?? '/usr/bin', HOME: process.env.HOME ?? '/' },
  };
  const database = await startDatabase(db, sharedOptions);
  const storeEnv = startStore(s3, sharedOptions);

  // One process connects the network of the fleet with the network of the test.
  const socketPath = (name: string): string => join(folder, `${name}.sock`);
  const members = [h1, h2, h3] as const;
  const routes = [
    `${socketPath('turns')}=${members.map(({ address }) => `${address}:8080`).join(',')}`,
    ...members.flatMap(({ address, namespace }) => [
      `${socketPath(namespace)}=${address}:8080`,
      `${socketPath(`${namespace}-operator`)}=${address}:9464`,
    ]),
    `${lb.address}:${pages.port}=${socketPath('pages')}`,
  ];
  relays.push(await relay(socketPath('pages'), [`127.0.0.1:${pages.port}`]));
  const relayCommand = [process.execPath, RELAY_PROGRAM, ...routes];
  programs.run('relay', ['nsenter', `--net=/run/netns/${lb.namespace}`, ...relayCommand], sharedOptions.env);
  await programs.waitUntilReady('the relay', () => existsSync(socketPath(`${h3.namespace}-operator`)));
  const openRelay = async (name: string): Promise<string> => {
    const newRelay = await relay('127.0.0.1:0', [socketPath(name)]);
    relays.push(newRelay);
    return `http://127.0.0.1:${newRelay.port}`;
  };
  const url = await openRelay('turns');

  const sharedEnv = {
    ...{ DATABASE_URL: database.url, ...storeEnv, BERTH_PUBLIC_URL: url },
    ...{ BERTH_SECRET: randomBytes(32).toString('hex'), BERTH_MASTER_KEY: randomBytes(32).toString('hex') },
    BERTH_ENGINE: LIGHT_ENGINE,
    BERTH_EGRESS_ALLOW: `${lb.address}/32:${pages.port}`,
    BERTH_EGRESS_HOSTS: `a.test=${lb.address},b.test=${lb.address}`,
    ...env,
  };
  const start = async (at: 0 | 1 | 2, key?: string): Promise<TestServer> => {
    const { namespace, address } = members[at];
    const ownRegion = REGIONS[at];
    const host = await startServer({
      ...(key === undefined ? {} : { key }),
      namespaceAccess: {
        command: commandInNamespace(namespace, []),
        url: await openRelay(namespace),
        operatorUrl: await openRelay(`${namespace}-operator`),
      },
      env: {
        ...{ ...sharedEnv, BERTH_SLOTS: String(slots[at]), BERTH_LISTEN: `${address}:8080` },
        ...{ BERTH_OPERATOR_LISTEN: `${address}:9464` },
        BERTH_REGION: [ownRegion, ...REGIONS.filter(region => region !== ownRegion)].join(','),
      },
    });
    hosts.push(host);
    return host;
  };
  const one = await start(0);
  const [two, three] = await Promise.all([start(1, one.key), start(2, one.key)]);
  const servers: Triple<TestServer> = [one, two, three];
  const memberOf = (host: TestServer): Member => members[servers.indexOf(host)] ?? h1;
  return {
    ...{ hosts: servers, url, key: one.key, database },
    setPlugged: (what, isPlugged) => network.setPlugged(what === 'store' ? s3 : memberOf(what), isPlugged),
    setDatabaseReaches: (host, isReachable) => network.route(db, memberOf(host), isReachable),
  };
}

function membersOf({ members }: Network): readonly [Member, Member, Member, Member, Member, Member] {
  const [h1, h2, h3, db, s3, lb] = members;
  if (!h1 || !h2 || !h3 || !db || !s3 || !lb)
    throw new Error('the network needs six members: three hosts, a database, a store and a proxy');
  return [h1, h2, h3, db, s3, lb];
}
