// Whether a request was sent by the browser of a session of ours: an agent must not approve its own device.

/** Where a request came from. */
export interface Peer {
  /** The other end of the connection: the caller, or a proxy in front of this service. */
  readonly address: string;
  readonly port?: number | undefined;
  /** The caller as the proxy reports it; equal to `address` without one. */
  readonly client: string;
}

export type IsFromSession = (peer: Peer) => boolean;

export interface FromSessionParts {
  /** Whether a session's egress proxy has a connection with this local end. */
  readonly hasDeparture: (address: string, port: number) => boolean;
  /** Whether this machine has this address, other than loopback. */
  readonly isThisMachine: (address: string) => boolean;
}

/**
 * Without a proxy in front, the other end of the connection is one of our own connections to the outside. With one, only the
 * address is known: sessions reach it from an address of this machine.
 */
export const fromSession =
  ({ hasDeparture, isThisMachine }: FromSessionParts): IsFromSession =>
  ({ address, port, client }) =>
    (port !== undefined && hasDeparture(address, port)) || (client !== address && isThisMachine(client));
