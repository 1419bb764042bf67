// An S3 store on a loopback port for tests: s3rver with a bucket in a temporary folder. It can be stopped and started
// again at the same address.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { claimFreePort } from './free-port.ts';

/** Types for the part of s3rver that is used. The package itself has no types. */
interface S3rver {
  run(): Promise<{ readonly port: number }>;
  readonly httpServer: { closeAllConnections(): void };
  close(): Promise<void>;
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver;

export interface S3Store {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** The `BERTH_S3_*` settings of a server. */
  readonly env: Readonly<Record<string, string>>;
  down(): Promise<void>;
  up(): Promise<void>;
  close(): Promise<void>;
}

const BUCKET = 'berth-test';
/** The only credentials that s3rver accepts. */
const KEY = 'S3RVER';

/**
 * The store for files of the server under test: a bucket if BERTH_TEST_STORE=s3 is set, or if the server runs in a
 * fleet, which needs a bucket. Otherwise undefined. Closed after the test file.
 */
export async function openChosenStore(): Promise<S3Store | undefined> {
  if (process.env.BERTH_TEST_STORE !== 's3' && !process.env.BERTH_TEST_FRONTS) return undefined;
  const store = await startS3();
  after(() => store.close());
  return store;
}

export async function startS3(): Promise<S3Store> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-s3-'));
  const Server = createRequire(import.meta.url)('s3rver') as S3rverClass;
  const start = async (port: number): Promise<{ server: S3rver; port: number }> => {
    const server = new Server({
      ...{ address: '127.0.0.1', port, silent: true, directory },
      configureBuckets: [{ name: BUCKET, configs: [] }],
    });
    return { server, port: (await server.run()).port };
  };
  const firstStart = await start(await claimFreePort());
  let runningServer: S3rver | undefined = firstStart.server;
  const down = async (): Promise<void> => {
    const stopPromise = runningServer?.close();
    runningServer?.httpServer.closeAllConnections();
    runningServer = undefined;
    await stopPromise;
  };
  const endpoint = `http://127.0.0.1:${firstStart.port}`;
  return {
    ...{ endpoint, bucket: BUCKET, accessKey: KEY, secretKey: KEY },
    env: {
      BERTH_S3_ENDPOINT: endpoint,
      BERTH_S3_BUCKET: BUCKET,
      BERTH_S3_ACCESS_KEY: KEY,
      BERTH_S3_SECRET_KEY: KEY,
    },
    down,
    up: async () => {
      runningServer ??= (await start(firstStart.port)).server;
    },
    close: async () => {
      await down();
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 }); // the store may still be writing
    },
  };
}
