// A port of 127.0.0.1 that nobody listens on right now, and that stays free while a server is down: it is below those that
// the kernel gives to connections, of which any program on the machine may have one in the meantime, and no other test
// that runs beside this one is given it.
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const FIRST = 10_000;
/** The kernel's own begin here. */
const END = 32_000;
const TRIES_MAX = 100;

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = FIRST + Math.floor(Math.random() * (END - FIRST));
    if ((await isOurs(port)) && (await isFree(port))) return port;
  }
  throw new Error(`none of ${TRIES_MAX} ports was free`);
}

/** A name in the kernel that one process can have; it goes with the process. */
async function isOurs(port: number): Promise<boolean> {
  const claim = createServer().listen(`\0berth-test-port-${port}`).unref();
  return listens(claim);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  if (!(await listens(server))) return false;
  server.close();
  await once(server, 'close');
  return true;
}

const listens = (server: Server): Promise<boolean> =>
  once(server, 'listening').then(
    () => true,
    () => false,
  );
