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
  const racing = new Race(takingTurns(addresses).slice(0, limits.addressesMax), port, make, limits);
  try {
    return await within(limits.connectMs, 'a host to connect', () => racing.run(), signal);
  } catch (error) {
    racing.stop();
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

class Race<S extends Socket> {
  readonly #waiting: Address[];
  readonly #port: number;
  readonly #make: () => S;
  readonly #nextAddressMs: number;
  readonly #won = Promise.withResolvers<Dialled<S>>();
  readonly #trying = new Set<Socket>();
  #company: NodeJS.Timeout | undefined;
  #over = false;

  constructor(order: Address[], port: number, make: () => S, { nextAddressMs }: EgressLimits) {
    this.#waiting = order;
    this.#port = port;
    this.#make = make;
    this.#nextAddressMs = nextAddressMs;
  }

  run(): Promise<Dialled<S>> {
    this.#next();
    return this.#won.promise;
  }

  stop(): void {
    this.#over = true;
    clearTimeout(this.#company);
    for (const socket of this.#trying) socket.destroy();
  }

  #next(failure?: unknown): void {
    if (this.#over) return;
    clearTimeout(this.#company);
    const address = this.#waiting.shift();
    if (address) this.#attempt(address);
    else if (this.#trying.size === 0) this.#won.reject(failure ?? new Error('there is no address to connect to'));
  }

  #attempt(address: Address): void {
    const socket = this.#make();
    this.#trying.add(socket);
    socket.once('connect', () => {
      this.#trying.delete(socket);
      this.stop();
      this.#won.resolve({ socket, address });
    });
    // Stays for the socket's life: an error must never be without a listener.
    socket.on('error', error => {
      this.#trying.delete(socket);
      this.#next(error);
    });
    connect(socket, address, this.#port);
    // Where there is nobody to come, no timer: it is made and taken back for each connection.
    if (this.#waiting.length > 0) this.#company = setTimeout(() => this.#next(), this.#nextAddressMs);
  }
}

function connect(socket: Socket, address: Address, port: number): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
  socket.connect({ host: address.text, port, autoSelectFamily: false });
}
