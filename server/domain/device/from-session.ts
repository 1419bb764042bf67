// Determines whether a request was sent by the browser of a session of this service. An agent must not approve its own
// device.
import type { PresentedCredentials } from '../identity/callers.ts';

/** Where a request came from. */
export interface Peer {
  /** Remote address of the connection: the address of the caller, or of a proxy in front of this service. */
  readonly address: string;
  readonly port?: number | undefined;
  /** The client's address as the proxy reports it. Without a proxy, the same as `address`. */
  readonly client: string;
}

export const peerOf = ({ ip, peer }: Pick<PresentedCredentials, 'ip' | 'peer'>): Peer => ({
  address: ip,
  ...peer,
  client: ip,
});

export type IsFromSession = (peer: Peer) => boolean;

export interface FromSessionParts {
  /** Whether the egress proxy of a session has a connection with this local address and port. */
  readonly hasOutgoingConnection: (address: string, port: number) => boolean;
  /** Whether this is an address of this machine, other than loopback. */
  readonly isThisMachine: (address: string) => boolean;
}

/**
 * Creates the function that checks whether a session sent the request. Without a proxy in front, the peer is compared
 * with the outgoing connections of sessions. Behind a proxy, only the address of the client is known. A client at an
 * address of this machine counts as a session, because sessions reach the proxy from such an address.
 */
export const createIsFromSession =
  ({ hasOutgoingConnection, isThisMachine }: FromSessionParts): IsFromSession =>
  ({ address, port, client }) =>
    (port !== undefined && hasOutgoingConnection(address, port)) || (client !== address && isThisMachine(client));
