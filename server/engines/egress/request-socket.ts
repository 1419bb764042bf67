// The outside end of plain requests: an ordinary stream for Node's HTTP client, that reads in larger pieces where much
// comes, and reads into the same memory again where what was read has gone on. Anew for each piece costs a third more.
import { Socket } from 'node:net';

const PIECE_BYTES_FIRST = 16 * 1024;
const PIECE_BYTES_MAX = 256 * 1024;
const GROWTH = 4;

export class RequestSocket extends Socket {
  /** Whether nobody holds what was read any more: all of it is with the kernel. */
  #hasGoneOn = (): boolean => false;

  constructor() {
    let memory: Buffer = Buffer.allocUnsafeSlow(PIECE_BYTES_FIRST);
    let from = 0;
    super({
      allowHalfOpen: true,
      onread: {
        buffer: () => memory.subarray(from),
        callback: count => {
          const isFull = from === 0 && count === memory.length;
          const goOn = this.push(memory.subarray(from, from + count));
          from = this.readableLength === 0 && this.#hasGoneOn() ? 0 : from + count;
          const bytes = isFull ? Math.min(PIECE_BYTES_MAX, memory.length * GROWTH) : memory.length;
          if (bytes > memory.length || memory.length - from < memory.length / 2) {
            memory = Buffer.allocUnsafeSlow(bytes);
            from = 0;
          }
          return goOn;
        },
      },
    });
  }

  /** Asked after each piece, until the next such call. */
  reuseWhen(hasGoneOn: () => boolean): void {
    this.#hasGoneOn = hasGoneOn;
  }
}
