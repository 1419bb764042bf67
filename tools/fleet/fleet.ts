// `npm run fleet`: three hosts on this machine, each in a network namespace of its own, over one PostgreSQL and one S3 store, and an
// address of the machine that gives connections to them in turn. Everything is gone when it ends. Needs root.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { inside, type Member, makeNetwork } from './network.ts';

const HOSTS = Number(process.env.FLEET_HOSTS ?? 3);
const SLOTS = process.env.FLEET_SLOTS ?? '3';
const PORT = Number(process.env.FLEET_PORT ?? 8080);
const ROOT = join(import.meta.dirname, '../..');
const STARTED_MS = 90_000;
const ENDED_MS = 30_000;
const LOOK_MS = 200;
/** Debian's account of PostgreSQL, which refuses to run as root. */
const DATABASE_USER = 'postgres';

const children: ChildProcess[] = [];
const folder = mkdtempSync(join(tmpdir(), 'berth-fleet-'));
const shared = {
  PATH: process.env.PATH ?? '/usr/bin',
  HOME: process.env.HOME ?? '/',
  BERTH_SECRET: randomBytes(32).toString('hex'),
  BERTH_MASTER_KEY: randomBytes(32).toString('hex'),
  BERTH_PUBLIC_URL: `http://127.0.0.1:${PORT}`,
  BERTH_OPERATOR_LISTEN: 'off',
};

function run(name: string, command: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  children.push(child);
  for (const stream of [child.stdout, child.stderr])
    if (stream)
      createInterface(stream).on('line', line => {
        if (/^ {2}key /.test(line)) console.log(line);
        if (process.env.FLEET_VERBOSE) console.log(`${name}  ${line}`);
      });
  child.once('exit', code => {
    if (!isEnding) console.error(`${name} ended with ${code}`);
  });
  return child;
}

async function startDatabase({ namespace, address }: Member): Promise<string> {
  const [initdb] = globSync('/usr/lib/postgresql/*/bin/initdb').sort().reverse();
  if (!initdb) throw new Error('PostgreSQL is missing: apt-get install postgresql');
  const data = join(folder, 'pg');
  mkdirSync(data);
  const [uid, gid] = ['-u', '-g'].map(flag =>
    Number(spawnSync('id', [flag, DATABASE_USER], { encoding: 'utf8' }).stdout),
  );
  if (!uid || !gid) throw new Error(`there is no account ${DATABASE_USER}`);
  for (const path of [folder, data]) chownSync(path, uid, gid);
  const as = ['setpriv', '--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups'];
  const made = spawnSync('setpriv', [...as.slice(1), initdb, '-D', data, '-U', 'berth', '-A', 'trust', '-E', 'UTF8']);
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const settings = [`listen_addresses=${address}`, `unix_socket_directories=${folder}`, 'max_connections=100'];
  const hba = join(data, 'pg_hba.conf');
  spawnSync('sh', ['-c', `echo 'host all all 10.77.0.0/24 trust' >> ${hba}`]);
  const server = [initdb.replace(/initdb$/, 'postgres'), '-D', data, ...settings.flatMap(one => ['-c', one])];
  run('database', ['nsenter', `--net=/run/netns/${namespace}`, ...as, ...server], shared);
  await appears('the database', () => existsSync(join(folder, '.s.PGSQL.5432')));
  return `postgres://berth@${address}:5432/postgres`;
}

function startStore({ namespace, address }: Member): Record<string, string> {
  const data = join(folder, 's3');
  mkdirSync(data);
  const s3rver = [process.execPath, 'node_modules/s3rver/bin/s3rver.js', '-d', data, '-a', address, '-p', '4568'];
  run('store', ['nsenter', `--net=/run/netns/${namespace}`, ...s3rver, '--configure-bucket', 'berth'], shared);
  return {
    BERTH_S3_ENDPOINT: `http://${address}:4568`,
    BERTH_S3_BUCKET: 'berth',
    BERTH_S3_ACCESS_KEY: 'S3RVER',
    BERTH_S3_SECRET_KEY: 'S3RVER',
  };
}

async function startHost({ namespace, address }: Member, env: Readonly<Record<string, string>>): Promise<void> {
  const dataDir = join(folder, namespace);
  mkdirSync(dataDir);
  const settings = { BERTH_DATA_DIR: dataDir, BERTH_LISTEN: `${address}:8080`, BERTH_SLOTS: SLOTS, BERTH_WARM: '1' };
  run(namespace, inside(namespace, [process.execPath, 'cli/berth.ts', 'serve']), { ...shared, ...env, ...settings });
  await appears(`host ${namespace}`, () => existsSync(join(dataDir, 'server.json')));
}

/** From the machine into the network of the fleet, through a Unix socket. */
async function openAddress({ namespace }: Member, hosts: readonly Member[]): Promise<void> {
  const socket = join(folder, 'turns.sock');
  const addresses = hosts.map(({ address }) => `${address}:8080`);
  const turns = [process.execPath, join(import.meta.dirname, 'turns.ts'), socket, ...addresses];
  run('turns', ['nsenter', `--net=/run/netns/${namespace}`, ...turns], shared);
  await appears('the proxy', () => existsSync(socket));
  createServer({ allowHalfOpen: true }, client => {
    const through = connect({ path: socket, allowHalfOpen: true });
    for (const [one, other] of [[client, through] as const, [through, client] as const]) {
      one.on('error', () => other.destroy());
      one.once('close', () => other.destroy());
      one.pipe(other);
    }
  }).listen(PORT, '127.0.0.1');
}

async function appears(what: string, isThere: () => boolean): Promise<void> {
  for (let leftMs = STARTED_MS; !isThere(); leftMs -= LOOK_MS) {
    if (leftMs <= 0 || isEnding) throw new Error(`${what} did not start; FLEET_VERBOSE=1 shows why`);
    await setTimeout(LOOK_MS);
  }
}

let isEnding = false;

/** Hosts first, which need the database. SIGINT ends their sessions, and is PostgreSQL's fast shutdown. */
async function end(remove: () => void): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  for (const child of children.reverse()) {
    const ended = new Promise(resolve => child.once('exit', resolve));
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
    process.kill(child.pid, 'SIGINT');
    await Promise.race([ended, setTimeout(ENDED_MS, undefined, { ref: false })]);
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  }
  remove();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function main(): Promise<void> {
  const names = [...Array.from({ length: HOSTS }, (_, at) => `h${at + 1}`), 'db'];
  const { members, remove } = makeNetwork(`fleet${process.pid}`, names);
  const [hosts, database] = [members.slice(0, HOSTS), members[HOSTS]];
  const stop = (): void => void end(remove).then(() => process.exit());
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    if (!database) throw new Error('there is no namespace for the database');
    const env = { DATABASE_URL: await startDatabase(database), ...startStore(database) };
    for (const host of hosts) await startHost(host, env);
    await openAddress(database, hosts);
    console.log(`\nThe fleet serves at http://127.0.0.1:${PORT}, through each of its hosts in turn:`);
    for (const { namespace, address } of hosts) console.log(`  ${namespace}  http://${address}:8080`);
    console.log('\nCtrl-C ends it.');
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    await end(remove);
    process.exit(1);
  }
}

await main();
