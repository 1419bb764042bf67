// `npm run fleet`: starts three hosts on this machine, each in its own network namespace, with one PostgreSQL and one
// S3 store, and a proxy at an address of the machine, which passes connections to the hosts in turn. When the command
// ends, everything is removed. Needs root.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONSOLE_LINK_LIFETIME_HOURS } from '../../contract/tokens.ts';
import { commandInNamespace, type Member, makeNetwork } from './network.ts';
import { Programs, type Variables } from './programs.ts';
import { relay } from './relay.ts';
import { startDatabase, startStore } from './shared-parts.ts';

const HOST_COUNT = Number(process.env.FLEET_HOSTS ?? 3);
const SLOTS_PER_HOST = process.env.FLEET_SLOTS ?? '3';
const PORT = Number(process.env.FLEET_PORT ?? 8080);
const RELAY_PROGRAM = join(import.meta.dirname, 'relay-program.ts');

/**
 * Patterns of the lines of the first host's start message that are shown. The hints below them are not: they name
 * commands that work only inside the host's namespace.
 */
const CONSOLE_LINK = /^ {2}console +\S+#token=/;
const KEY = /^ {2}key /;
const CONSOLE_HINT = `            signs you in for ${CONSOLE_LINK_LIFETIME_HOURS} hours as the owner, who sets limits and makes keys`;

const folder = mkdtempSync(join(tmpdir(), 'berth-fleet-'));
const sharedEnv = {
  PATH: process.env.PATH ?? '/usr/bin',
  HOME: process.env.HOME ?? '/',
  BERTH_SECRET: randomBytes(32).toString('hex'),
  BERTH_MASTER_KEY: randomBytes(32).toString('hex'),
  BERTH_PUBLIC_URL: `http://127.0.0.1:${PORT}`,
  BERTH_OPERATOR_LISTEN: 'off',
};
const programs = new Programs({
  onLine: (name, line) => {
    if (CONSOLE_LINK.test(line)) console.log(`${line}\n${CONSOLE_HINT}`);
    if (KEY.test(line)) console.log(line);
    if (process.env.FLEET_VERBOSE) console.log(`${name}  ${line}`);
  },
  onLost: (name, code) => console.error(`${name} ended with ${code}`),
});

async function startHost({ namespace, address }: Member, env: Variables): Promise<void> {
  const dataDir = join(folder, namespace);
  mkdirSync(dataDir);
  const settings = {
    BERTH_DATA_DIR: dataDir,
    BERTH_LISTEN: `${address}:8080`,
    BERTH_SLOTS: SLOTS_PER_HOST,
    BERTH_WARM: '1',
  };
  programs.run(namespace, commandInNamespace(namespace, [process.execPath, 'cli/berth.ts', 'serve']), {
    ...sharedEnv,
    ...env,
    ...settings,
  });
  await programs.waitUntilReady(`host ${namespace}`, () => existsSync(join(dataDir, 'server.json')));
}

/** Listens on an address of the machine, and passes connections into the network of the fleet through a Unix socket. */
async function openAddress({ namespace }: Member, hosts: readonly Member[]): Promise<void> {
  const socketPath = join(folder, 'turns.sock');
  const addresses = hosts.map(({ address }) => `${address}:8080`);
  const relayCommand = [process.execPath, RELAY_PROGRAM, `${socketPath}=${addresses.join(',')}`];
  programs.run('turns', ['nsenter', `--net=/run/netns/${namespace}`, ...relayCommand], sharedEnv);
  await programs.waitUntilReady('the proxy', () => existsSync(socketPath));
  await relay(`127.0.0.1:${PORT}`, [socketPath]);
}

let endOfFleet: Promise<void> | undefined;

/** Runs once, even if a signal arrives while the fleet is starting. */
function endFleet(remove: () => void): Promise<void> {
  endOfFleet ??= programs.endAll().then(() => {
    remove();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return endOfFleet;
}

async function main(): Promise<void> {
  const names = [...Array.from({ length: HOST_COUNT }, (_, at) => `h${at + 1}`), 'db'];
  const { members, remove } = makeNetwork(`fleet${process.pid}`, names);
  const [hosts, database] = [members.slice(0, HOST_COUNT), members[HOST_COUNT]];
  const stop = (): void => void endFleet(remove).then(() => process.exit());
  // Not `once`: Ctrl-C arrives twice, from the terminal and from npm, which forwards it. The second signal must not
  // interrupt the removal.
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    if (!database) throw new Error('there is no namespace for the database');
    const sharedOptions = { programs, folder, env: sharedEnv };
    const env = {
      DATABASE_URL: (await startDatabase(database, sharedOptions)).url,
      ...startStore(database, sharedOptions),
    };
    for (const host of hosts) await startHost(host, env);
    await openAddress(database, hosts);
    console.log(`\nThe fleet serves at http://127.0.0.1:${PORT}, through each of its hosts in turn:`);
    for (const { namespace, address } of hosts) console.log(`  ${namespace}  http://${address}:8080`);
    console.log('\nCtrl-C ends it.');
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    await endFleet(remove);
    process.exit(1);
  }
}

await main();
