// A free port of 127.0.0.1 that stays free while a server is down. The port is below the range that the kernel assigns
// to outgoing connections of other programs. This process claims the port for its lifetime, so that other test files do
// not get the same port.
import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';

/** Higher than every port that Chromium refuses to connect to (the highest is 10080). */
const PORT_MIN = 10_100;
/** The upper limit, exclusive. By default, the kernel's range for outgoing connections begins at 32768. */
const PORT_END = 32_000;
const TRIES_MAX = 100;

export async function claimFreePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_END - PORT_MIN));
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`none of the ${TRIES_MAX} ports that were tried is free; end programs that listen on 127.0.0.1`);
}

/** Claims the port with an abstract socket, which the kernel removes when the process ends. */
async function claim(port: number): Promise<boolean> {
  const claimServer = createServer().unref();
  return tryListen(claimServer, { path: `\0berth-test-port-${port}` });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  if (!(await tryListen(server, { port, host: '127.0.0.1' }))) return false;
  server.close();
  await once(server, 'close');
  return true;
}

const tryListen = (server: ReturnType<typeof createServer>, endpoint: ListenOptions): Promise<boolean> =>
  once(server.listen(endpoint), 'listening').then(
    () => true,
    () => false,
  );
