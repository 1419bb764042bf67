// Determines the addresses on which the processes of this service listen on this machine, without opening them.
import type { Config } from '../config.ts';
import type { PeerAddress } from '../entry/forward/peer-listener.ts';

/**
 * Returns the additional address at which other hosts reach this one. Undefined unless this host uses TLS between
 * hosts, or is one of several processes that share an address.
 */
export function peerAddress({ process, peerUrl, peerTls, listen: { host } }: Config): PeerAddress | undefined {
  if (!process && peerTls.certFile === undefined) return undefined;
  if (peerUrl.startsWith('unix:')) return { socket: peerUrl.slice('unix:'.length) };
  const { protocol, port } = new URL(peerUrl);
  return { host, port: Number(port || PORTS[protocol]) };
}

const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/**
 * The listeners of all processes of this machine. All processes share the public address. The other ports increase by
 * one from process to process (config.ts).
 */
export function listenersOf(config: Config): ReadonlyArray<Config['listen']> {
  const { listen, operatorListen, process: { number, processCount } = { number: 1, processCount: 1 } } = config;
  const peer = peerAddress(config);
  const ownListeners = [operatorListen, peer && 'port' in peer ? peer : undefined]
    .filter(listener => listener !== undefined)
    .filter(({ port }) => port !== 0); // The system chooses this port, so it is not known here.
  return [
    listen,
    ...ownListeners.flatMap(({ host, port }) =>
      Array.from({ length: processCount }, (_, at) => ({ host, port: port + at + 1 - number })),
    ),
  ];
}
