// The outbound connections of one session. Counts their bytes, and closes those that are idle or that a new policy
// refuses. The counts come from the sockets, so this file does not touch the data itself.
import type { Socket } from 'node:net';
import type { Address } from './address.ts';
import type { OutboundEndpoints } from './departures.ts';
import type { EgressLimits } from './limits.ts';
import type { Upstream } from './upstream.ts';

export interface OutboundConnection {
  readonly socket: Socket;
  /** The requested host. */
  readonly hostname: string;
  /** The remote address of the connection, which belongs to the host or to the proxy. */
  readonly address: Address;
  readonly port: number;
  /** The local address of the connection. Undefined if the socket was already closed. */
  readonly local: string | undefined;
  readonly upstream: Upstream | undefined;
}

interface WatchedConnection extends OutboundConnection {
  /** The number of bytes in both directions at the last check. It has not changed since `sinceMs`. */
  bytes: number;
  sinceMs: number;
}

export class OutboundConnections {
  readonly #openConnections = new Set<WatchedConnection>();
  #openedCount = 0;
  #closedBytesUp = 0;
  #closedBytesDown = 0;
  #closedProxyBytes = 0;
  readonly #endpoints: OutboundEndpoints | undefined;

  constructor(endpoints?: OutboundEndpoints) {
    this.#endpoints = endpoints;
  }

  add(connection: OutboundConnection, nowMs: number): void {
    const watchedConnection: WatchedConnection = { ...connection, bytes: 0, sinceMs: nowMs };
    this.#openConnections.add(watchedConnection);
    this.#openedCount += 1;
    this.#endpoints?.add(connection.socket);
    connection.socket.once('close', () => {
      this.#openConnections.delete(watchedConnection);
      this.#closedBytesUp += connection.socket.bytesWritten;
      this.#closedBytesDown += connection.socket.bytesRead;
      if (connection.upstream) this.#closedProxyBytes += bytesOf(connection);
    });
  }

  get openCount(): number {
    return this.#openConnections.size;
  }

  get totalCount(): number {
    return this.#openedCount;
  }

  /** Bytes sent from the session to the outside, including the overhead of HTTP and TLS. */
  get bytesUp(): number {
    return sum(this.#openConnections, connection => connection.socket.bytesWritten, this.#closedBytesUp);
  }

  get bytesDown(): number {
    return sum(this.#openConnections, connection => connection.socket.bytesRead, this.#closedBytesDown);
  }

  /** Bytes in both directions through upstream proxies. */
  get bytesByProxy(): number {
    return sum(
      this.#openConnections,
      connection => (connection.upstream ? bytesOf(connection) : 0),
      this.#closedProxyBytes,
    );
  }

  closeIdle(nowMs: number, { idleMs, halfClosedIdleMs }: EgressLimits): void {
    for (const connection of this.#openConnections) {
      const bytes = bytesOf(connection);
      if (bytes !== connection.bytes) Object.assign(connection, { bytes, sinceMs: nowMs });
      const isHalfClosed = connection.socket.readableEnded || connection.socket.writableEnded;
      if (nowMs - connection.sinceMs >= (isHalfClosed ? halfClosedIdleMs : idleMs)) connection.socket.destroy();
    }
  }

  closeWhere(matches: (connection: OutboundConnection) => boolean): void {
    for (const connection of this.#openConnections) if (matches(connection)) connection.socket.destroy();
  }
}

const bytesOf = ({ socket }: OutboundConnection): number => socket.bytesRead + socket.bytesWritten;

function sum(
  outbound: Iterable<WatchedConnection>,
  bytes: (connection: WatchedConnection) => number,
  start: number,
): number {
  let total = start;
  for (const connection of outbound) total += bytes(connection);
  return total;
}
