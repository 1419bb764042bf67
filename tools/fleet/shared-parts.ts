// What the hosts of a fleet on this machine share: a PostgreSQL and an S3 store, each in a network namespace.
import { type ChildProcess, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findBinaries } from '../../server/engines/store/embedded/find-binaries.ts';
import { postgresIdentity } from '../../server/engines/store/embedded/identity.ts';
import { type Member, SUBNET } from './network.ts';
import type { Programs, Variables } from './programs.ts';

const BUCKET = 'berth';
/** The only credentials that s3rver accepts. */
const KEY = 'S3RVER';
const STORE_PORT = 4568;

export interface SharedPartsOptions {
  readonly programs: Programs;
  readonly folder: string;
  readonly env: Variables;
}

export interface Database {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function startDatabase(
  { namespace, address }: Member,
  { programs, folder, env }: SharedPartsOptions,
): Promise<Database> {
  const binaries = await findBinaries();
  if (!binaries) throw new Error('PostgreSQL was not found. Run `npm ci`, which installs it.');
  const dataFolder = join(folder, 'pg');
  mkdirSync(dataFolder, { mode: 0o700 });
  const { wrapCommand: as } = await postgresIdentity(dataFolder);
  const initdbArgs = ['-D', dataFolder, '-U', 'berth', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  const [setpriv = '', ...args] = as([join(binaries.folder, 'initdb'), ...initdbArgs]);
  const initdbResult = spawnSync(setpriv, args, { encoding: 'utf8' });
  if (initdbResult.status !== 0)
    throw new Error(`initdb failed: ${initdbResult.error?.message ?? initdbResult.stderr}`);
  appendFileSync(join(dataFolder, 'pg_hba.conf'), `host all all ${SUBNET}.0/24 trust\n`);
  const settings = [
    `listen_addresses=${address}`,
    `unix_socket_directories=${dataFolder}`,
    'max_connections=100',
    'fsync=off',
  ];
  const serverCommand = [join(binaries.folder, 'postgres'), '-D', dataFolder, ...settings.flatMap(one => ['-c', one])];
  const command = ['nsenter', `--net=/run/netns/${namespace}`, ...as(serverCommand)];
  let postgresProcess: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    postgresProcess ??= programs.run('database', command, env);
    await programs.waitUntilReady('the database', () => existsSync(join(dataFolder, '.s.PGSQL.5432')));
  };
  await start();
  return {
    url: `postgres://berth@${address}:5432/postgres`,
    start,
    stop: async () => {
      if (postgresProcess) await programs.end(postgresProcess);
      postgresProcess = undefined;
    },
  };
}

/** Starts the S3 store. Returns the settings for hosts that use it. */
export function startStore({ namespace, address }: Member, { programs, folder, env }: SharedPartsOptions): Variables {
  const dataFolder = join(folder, 's3');
  mkdirSync(dataFolder);
  const s3rverCommand = [process.execPath, 'node_modules/s3rver/bin/s3rver.js', '-d', dataFolder, '-a', address];
  const listenArgs = ['-p', `${STORE_PORT}`, '--configure-bucket', BUCKET];
  programs.run('store', ['nsenter', `--net=/run/netns/${namespace}`, ...s3rverCommand, ...listenArgs], env);
  return {
    BERTH_S3_ENDPOINT: `http://${address}:${STORE_PORT}`,
    BERTH_S3_BUCKET: BUCKET,
    BERTH_S3_ACCESS_KEY: KEY,
    BERTH_S3_SECRET_KEY: KEY,
  };
}
