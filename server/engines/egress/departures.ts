// The local addresses and ports of the outbound connections of sessions. A request that arrives from one of them was
// sent by the browser of a session.
import type { Socket } from 'node:net';

export class OutboundEndpoints {
  readonly #openKeys = new Set<string>();

  /** Records a connected socket until it closes. */
  add(socket: Socket): void {
    const { localAddress, localPort } = socket;
    if (localAddress === undefined || localPort === undefined) return;
    const endpointKey = endpointKeyOf(localAddress, localPort);
    this.#openKeys.add(endpointKey);
    socket.once('close', () => this.#openKeys.delete(endpointKey));
  }

  has(address: string, port: number): boolean {
    return this.#openKeys.has(endpointKeyOf(address, port));
  }
}

const endpointKeyOf = (address: string, port: number): string => `${address.replace(/^::ffff:(?=\d+\.)/i, '')} ${port}`;
