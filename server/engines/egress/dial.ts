// Connects to the first of some checked addresses that answers ("happy eyeballs", RFC 8305): both families take turns,
// a slow attempt gets company instead of being waited for. Never resolves anything.
import { connect, type Socket } from 'node:net';
import { WaitExpired, within } from '../../kit/wait.ts';
import type { Address } from './address.ts';
import { Failed } from './failure.ts';
import type { EgressLimits } from './limits.ts';

export interface Dialled {
  readonly socket: Socket;
  readonly address: Address;
}

const KEEP_ALIVE_PROBE_MS = 60_000;

export async function dial(
  addresses: readonly Address[],
  port: number,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<Dialled> {
  const order = takingTurns(addresses).slice(0, limits.addressesMax);
  try {
    return await within(limits.connectMs, 'a host to connect', late => race(order, port, limits, late), signal);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failed(error instanceof WaitExpired || timedOut(error) ? 'connect_timed_out' : 'connect_failed', error);
  }
}

const timedOut = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT';

/** IPv6 first, then by turns. */
function takingTurns(addresses: readonly Address[]): Address[] {
  const six = addresses.filter(address => address.family === 6);
  const four = addresses.filter(address => address.family === 4);
  const pairs = Array.from({ length: Math.max(six.length, four.length) }, (_, index) => [six[index], four[index]]);
  return pairs.flat().filter(address => address !== undefined);
}

function race(
  waiting: Address[],
  port: number,
  { nextAddressMs }: EgressLimits,
  signal: AbortSignal,
): Promise<Dialled> {
  const { promise, resolve, reject } = Promise.withResolvers<Dialled>();
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
    const socket = open(address, port);
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
    company = setTimeout(next, nextAddressMs);
  };
  signal.addEventListener('abort', finish, { once: true });
  next();
  return promise;
}

const open = (address: Address, port: number): Socket =>
  connect({
    host: address.text,
    port,
    allowHalfOpen: true,
    autoSelectFamily: false,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
  });
