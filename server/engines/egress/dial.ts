// Connects to the first of some checked addresses that answers ("happy eyeballs", RFC 8305): both families take turns,
// a slow attempt gets company instead of being waited for. Never resolves anything.
import type { Socket } from 'node:net';
import { WaitExpired, within } from '../../kit/wait.ts';
import type { Address } from './address.ts';
import { Failed } from './failure.ts';
import type { EgressLimits } from './limits.ts';

export interface Dialled<S extends Socket> {
  readonly socket: S;
  readonly address: Address;
}

const KEEP_ALIVE_PROBE_MS = 60_000;

/** `make`: the kind of socket that is wanted, not yet connected. */
export async function dial<S extends Socket>(
  addresses: readonly Address[],
  port: number,
  make: () => S,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<Dialled<S>> {
  const order = takingTurns(addresses).slice(0, limits.addressesMax);
  try {
    return await within(limits.connectMs, 'a host to connect', late => race(order, port, make, limits, late), signal);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failed(error instanceof WaitExpired || timedOut(error) ? 'connect_timed_out' : 'connect_failed', error);
  }
}

const timedOut = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT';

/** IPv6 first, then by turns. */
function takingTurns(addresses: readonly Address[]): Address[] {
  if (addresses.length < 2) return [...addresses];
  const six = addresses.filter(address => address.family === 6);
  const four = addresses.filter(address => address.family === 4);
  const pairs = Array.from({ length: Math.max(six.length, four.length) }, (_, index) => [six[index], four[index]]);
  return pairs.flat().filter(address => address !== undefined);
}

function race<S extends Socket>(
  waiting: Address[],
  port: number,
  make: () => S,
  { nextAddressMs }: EgressLimits,
  signal: AbortSignal,
): Promise<Dialled<S>> {
  const { promise, resolve, reject } = Promise.withResolvers<Dialled<S>>();
  const trying = new Set<Socket>();
  let company: NodeJS.Timeout | undefined;
  let over = false;
  const finish = (): void => {
    over = true;
    clearTimeout(company);
    for (const socket of trying) socket.destroy();
  };
  const next = (failure?: unknown): void => {
    if (over) return;
    clearTimeout(company);
    const address = waiting.shift();
    if (address) attempt(address);
    else if (trying.size === 0) reject(failure ?? new Error('there is no address to connect to'));
  };
  const attempt = (address: Address): void => {
    const socket = make();
    trying.add(socket);
    socket.once('connect', () => {
      trying.delete(socket);
      finish();
      resolve({ socket, address });
    });
    // Stays for the socket's life: an error must never be without a listener.
    socket.on('error', error => {
      trying.delete(socket);
      next(error);
    });
    connect(socket, address, port);
    if (waiting.length > 0) company = setTimeout(next, nextAddressMs);
  };
  signal.addEventListener('abort', finish, { once: true });
  next();
  return promise;
}

function connect(socket: Socket, address: Address, port: number): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
  socket.connect({ host: address.text, port, autoSelectFamily: false });
}
