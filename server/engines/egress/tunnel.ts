// Two sockets joined so that each side learns what happened to the other: its end, its reset, its slowness. Up the data
// passes by `pipe`; down, where nearly all of it flows, by the shorter way of downstream.ts.
import { Socket } from 'node:net';
import type { BigReads } from './big-reads.ts';
import { Downstream } from './downstream.ts';

/** The outside end of a tunnel. It takes no part in Node's readable streams: a third less CPU time a byte. */
export class OutsideSocket extends Socket {
  readonly #down: Downstream;

  constructor(bigReads: BigReads) {
    const down = new Downstream(bigReads);
    super({
      allowHalfOpen: true,
      onread: { buffer: () => down.buffer, callback: (count, memory) => down.arrived(memory.subarray(0, count)) },
    });
    this.#down = down;
    this.once('close', () => down.close());
  }

  pourInto(browser: Socket): void {
    this.#down.open(browser, () => this.resume());
    if (this.readableEnded) browser.end();
    else this.once('end', () => browser.end());
  }
}

/** By way of another proxy the outside is an ordinary stream: its handshake was read from it, and it may be TLS. */
export function join(browser: Socket, outside: Socket): void {
  tie(browser, outside);
  tie(outside, browser);
  browser.pipe(outside);
  if (outside instanceof OutsideSocket) outside.pourInto(browser);
  else outside.pipe(browser);
}

function tie(from: Socket, to: Socket): void {
  from.once('error', () => reset(to));
  // What `from` had sent before it closed may still wait in `to`: it is written out first.
  from.once('close', () => to.destroySoon());
}

/** While its end is going out a socket cannot be reset: Node then never closes it, and the descriptor leaks. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
