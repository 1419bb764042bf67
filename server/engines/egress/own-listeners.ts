// The addresses under which this machine reaches a listener of ours, so that no session gets at it by way of an opened range.
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { type AddressRange, parseAddress } from './address.ts';

export interface Listener {
  readonly host: string;
  readonly port: number;
}

type Interfaces = () => NodeJS.Dict<NetworkInterfaceInfo[]>;

/** Looked up anew at each question: interfaces come and go while we run. */
export function ownListeners(
  listeners: readonly Listener[],
  interfaces: Interfaces = networkInterfaces,
): (port: number) => readonly AddressRange[] {
  return port => listeners.filter(listener => listener.port === port).flatMap(listener => reach(listener, interfaces));
}

function reach(listener: Listener, interfaces: Interfaces): AddressRange[] {
  const address = parseAddress(listener.host);
  const wildcard = address?.bytes.every(byte => byte === 0) ?? true;
  if (address && !wildcard) return [single(address.text, address.family, listener.port)];
  // A wildcard, or a name, of which we cannot know here what it stands for: every address of this machine.
  const all = Object.values(interfaces()).flatMap(entries => entries ?? []);
  return [
    { address: '127.0.0.0', prefix: 8, family: 4, port: listener.port },
    single('::1', 6, listener.port),
    ...all.map(entry => single(entry.address.replace(/%.*$/, ''), entry.family === 'IPv6' ? 6 : 4, listener.port)),
  ];
}

const single = (address: string, family: 4 | 6, port: number): AddressRange => ({
  address,
  prefix: family === 4 ? 32 : 128,
  family,
  port,
});
