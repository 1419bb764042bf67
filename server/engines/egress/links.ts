// All connections that one session has to the outside: their bytes, their idleness, and whether they may go on when the
// policy changes. Bytes are read from the sockets' own counts, so nothing stands in the way of the data.
import type { Socket } from 'node:net';
import type { Address } from './address.ts';
import type { EgressLimits } from './limits.ts';
import type { Upstream } from './upstream.ts';

export interface Link {
  readonly socket: Socket;
  /** Where it leads in the end. */
  readonly hostname: string;
  /** What was connected to: of the host itself, or of the proxy before it. */
  readonly address: Address;
  readonly port: number;
  /** The near end. */
  readonly local: string | undefined;
  readonly upstream: Upstream | undefined;
}

interface Watched extends Link {
  /** Bytes both ways when they were last looked at, and since when they stand there. */
  bytes: number;
  sinceMs: number;
}

export class Links {
  readonly #open = new Set<Watched>();
  #opened = 0;
  #closedUp = 0;
  #closedDown = 0;
  #closedByProxy = 0;

  add(link: Link, nowMs: number): void {
    const watched: Watched = { ...link, bytes: 0, sinceMs: nowMs };
    this.#open.add(watched);
    this.#opened += 1;
    link.socket.once('close', () => {
      this.#open.delete(watched);
      this.#closedUp += link.socket.bytesWritten;
      this.#closedDown += link.socket.bytesRead;
      if (link.upstream) this.#closedByProxy += bytesOf(link);
    });
  }

  get open(): number {
    return this.#open.size;
  }

  get opened(): number {
    return this.#opened;
  }

  /** From the session to the outside, with everything that HTTP and TLS add. */
  get bytesUp(): number {
    return sum(this.#open, link => link.socket.bytesWritten, this.#closedUp);
  }

  get bytesDown(): number {
    return sum(this.#open, link => link.socket.bytesRead, this.#closedDown);
  }

  /** Those of both directions that went by way of other proxies. */
  get bytesByProxy(): number {
    return sum(this.#open, link => (link.upstream ? bytesOf(link) : 0), this.#closedByProxy);
  }

  endIdle(nowMs: number, { idleMs, halfClosedIdleMs }: EgressLimits): void {
    for (const link of this.#open) {
      const bytes = bytesOf(link);
      if (bytes !== link.bytes) Object.assign(link, { bytes, sinceMs: nowMs });
      const halfClosed = link.socket.readableEnded || link.socket.writableEnded;
      if (nowMs - link.sinceMs >= (halfClosed ? halfClosedIdleMs : idleMs)) link.socket.destroy();
    }
  }

  endWhere(wrong: (link: Link) => boolean): void {
    for (const link of this.#open) if (wrong(link)) link.socket.destroy();
  }
}

const bytesOf = ({ socket }: Link): number => socket.bytesRead + socket.bytesWritten;

function sum(links: Iterable<Watched>, bytes: (link: Watched) => number, start: number): number {
  let total = start;
  for (const link of links) total += bytes(link);
  return total;
}
