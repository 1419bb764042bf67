// Connects to the first of the given addresses that responds ("happy eyeballs", RFC 8305): the address families
// alternate, and the next attempt starts while a slow one is still pending. Does not resolve names.
import type { Socket } from 'node:net';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import type { Address } from './address.ts';
import { FailedError } from './failure.ts';
import type { EgressLimits } from './limits.ts';

export interface DialledConnection<S extends Socket> {
  readonly socket: S;
  readonly address: Address;
}

const KEEP_ALIVE_PROBE_MS = 60_000;

/**
 * Connects to one of the addresses. `createSocket` creates an unconnected socket for each attempt. Rejects with
 * FailedError if no attempt succeeds.
 */
export async function dial<S extends Socket>(
  addresses: readonly Address[],
  port: number,
  createSocket: () => S,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<DialledConnection<S>> {
  const race = new Race(interleaveFamilies(addresses).slice(0, limits.addressesMax), port, createSocket, limits);
  try {
    return await withTimeout(limits.connectMs, 'a host to connect', () => race.run(), signal);
  } catch (error) {
    race.stop();
    if (signal.aborted) throw error;
    throw new FailedError(
      error instanceof WaitExpired || isTimeout(error) ? 'connect_timed_out' : 'connect_failed',
      error,
    );
  }
}

const isTimeout = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT';

/** Alternates between the families, IPv6 first. */
function interleaveFamilies(addresses: readonly Address[]): Address[] {
  if (addresses.length < 2) return [...addresses];
  const ipv6Addresses = addresses.filter(address => address.family === 6);
  const ipv4Addresses = addresses.filter(address => address.family === 4);
  const pairs = Array.from({ length: Math.max(ipv6Addresses.length, ipv4Addresses.length) }, (_, index) => [
    ipv6Addresses[index],
    ipv4Addresses[index],
  ]);
  return pairs.flat().filter(address => address !== undefined);
}

class Race<S extends Socket> {
  readonly #untriedAddresses: Address[];
  readonly #port: number;
  readonly #createSocket: () => S;
  readonly #nextAddressDelayMs: number;
  readonly #winner = Promise.withResolvers<DialledConnection<S>>();
  readonly #pendingSockets = new Set<Socket>();
  #nextTimer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(orderedAddresses: Address[], port: number, createSocket: () => S, { nextAddressMs }: EgressLimits) {
    this.#untriedAddresses = orderedAddresses;
    this.#port = port;
    this.#createSocket = createSocket;
    this.#nextAddressDelayMs = nextAddressMs;
  }

  run(): Promise<DialledConnection<S>> {
    this.#tryNext();
    return this.#winner.promise;
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#nextTimer);
    for (const socket of this.#pendingSockets) socket.destroy();
  }

  #tryNext(failure?: unknown): void {
    if (this.#isOver) return;
    clearTimeout(this.#nextTimer);
    const address = this.#untriedAddresses.shift();
    if (address) this.#attempt(address);
    else if (this.#pendingSockets.size === 0) this.#winner.reject(failure ?? new Error('the host has no address'));
  }

  #attempt(address: Address): void {
    const socket = this.#createSocket();
    this.#pendingSockets.add(socket);
    socket.once('connect', () => {
      this.#pendingSockets.delete(socket);
      this.stop();
      this.#winner.resolve({ socket, address });
    });
    // The listener is not removed after the connection has been established, because an `error` event without a
    // listener would end the process.
    socket.on('error', error => {
      this.#pendingSockets.delete(socket);
      this.#tryNext(error);
    });
    connect(socket, address, this.#port);
    // No timer is set for the last address. This code runs for every connection, so it avoids timers that are not
    // needed.
    if (this.#untriedAddresses.length > 0)
      this.#nextTimer = setTimeout(() => this.#tryNext(), this.#nextAddressDelayMs);
  }
}

function connect(socket: Socket, address: Address, port: number): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
  socket.connect({ host: address.text, port, autoSelectFamily: false });
}
