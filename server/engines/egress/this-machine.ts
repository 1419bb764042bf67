// The addresses of this machine and the listeners of this server, which sessions must not reach.
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import type { Clock } from '../../kit/clock.ts';
import { type Address, parseAddress } from './address.ts';

export interface ThisMachine {
  /**
   * Whether the machine has this address. `local` is the local address of an open connection to it. Some addresses of
   * the machine are missing from the list of interfaces; for such an address the kernel uses the same address at both
   * ends.
   */
  has(address: Address, port: number, local?: string): boolean;
  /** Whether this server listens on this address and port. */
  listens(address: Address, port: number): boolean;
}

export interface Listener {
  readonly host: string;
  readonly port: number;
}

export interface ThisMachineOptions {
  readonly listeners: readonly Listener[];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /**
   * The port of a TLS proxy that may run on this machine in front of the service. The port is public, so sessions may
   * reach it.
   */
  readonly publicPort?: number | undefined;
  readonly interfaces?: () => NodeJS.Dict<NetworkInterfaceInfo[]>;
}

/**
 * How long the list of interfaces is cached. The list is cached only briefly, because interfaces may change at run
 * time.
 */
const INTERFACES_CACHE_MS = 1000;

export function createThisMachine({
  listeners,
  clock,
  publicPort,
  interfaces = networkInterfaces,
}: ThisMachineOptions): ThisMachine {
  let interfaceKeys: ReadonlySet<string> = new Set();
  let nextReadMs = Number.NEGATIVE_INFINITY;
  const isOwn = (address: Address): boolean => {
    if (clock.monotonicMs() >= nextReadMs) {
      nextReadMs = clock.monotonicMs() + INTERFACES_CACHE_MS;
      const addressTexts = Object.values(interfaces()).flatMap(entries => entries?.map(entry => entry.address) ?? []);
      interfaceKeys = new Set(addressTexts.map(keyOfText));
    }
    return isLoopback(address) || isUnspecified(address) || interfaceKeys.has(keyOf(address));
  };
  const parsedListeners = listeners.map(({ host, port }) => ({ address: parseAddress(host), port }));
  return {
    has: (address, port, local) =>
      port !== publicPort && (isOwn(address) || (local !== undefined && keyOfText(local) === keyOf(address))),
    listens: (address, port) =>
      parsedListeners.some(listener => {
        if (listener.port !== port) return false;
        // A listener whose host is a name is treated as listening on all addresses, because the name's addresses are
        // not known here.
        if (!listener.address || isUnspecified(listener.address)) return isOwn(address);
        // On Linux, a connection to the unspecified address goes to loopback.
        if (isUnspecified(address)) return isLoopback(listener.address);
        return keyOf(listener.address) === keyOf(address);
      }),
  };
}

/** Returns a function that tells whether an address belongs to this machine. Loopback addresses do not count. */
export function machineAddressMatcher(clock: ThisMachineOptions['clock']): (address: string) => boolean {
  const machine = createThisMachine({ listeners: [], clock });
  return text => {
    const address = parseAddress(text);
    return address !== undefined && !isLoopback(address) && machine.has(address, 0);
  };
}

const keyOf = ({ bytes }: Address): string => bytes.join('.');

function keyOfText(text: string): string {
  const address = parseAddress(text.replace(/%.*$/, ''));
  return address ? keyOf(address) : '';
}

export const isUnspecified = ({ bytes }: Address): boolean => bytes.every(byte => byte === 0);

export const isLoopback = ({ family, bytes }: Address): boolean =>
  family === 4 ? bytes[0] === 127 : bytes[15] === 1 && bytes.subarray(0, 15).every(byte => byte === 0);
