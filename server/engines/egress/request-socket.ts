// The outside end of plain requests: an ordinary stream for Node's HTTP client, that reads in larger pieces where much
// comes, and reads into the same memory again where what was read has gone on. Anew for each piece costs a third more.
// The rest of a large body goes past the client altogether, straight to the browser's socket.
import { Socket } from 'node:net';
import type { BigReads } from './big-reads.ts';
import { Downstream } from './downstream.ts';

const PIECE_BYTES_FIRST = 16 * 1024;
/**
 * What all of them read into at first: memory for each small answer would keep the garbage collector busy. What came is
 * copied out before anybody else reads.
 */
const SHARED = Buffer.allocUnsafeSlow(PIECE_BYTES_FIRST);
const PIECE_BYTES_MAX = 256 * 1024;
const GROWTH = 4;

interface Pouring {
  readonly down: Downstream;
  readonly done: () => void;
  left: number;
}

/** As it may be held beyond this turn of the event loop. */
const holdable = (piece: Uint8Array): Uint8Array => (piece.buffer === SHARED.buffer ? Buffer.from(piece) : piece);

export class RequestSocket extends Socket {
  readonly #bigReads: BigReads;
  /** Whether nobody holds what was read any more: all of it is with the kernel. */
  #hasGoneOn = (): boolean => false;
  #pouring: Pouring | undefined;

  constructor(bigReads: BigReads) {
    let memory: Buffer | undefined;
    let from = 0;
    const pushedFirst = (piece: Uint8Array): boolean => {
      if (this.bytesRead >= PIECE_BYTES_FIRST)
        memory = Buffer.allocUnsafeSlow(PIECE_BYTES_FIRST * (piece.length === PIECE_BYTES_FIRST ? GROWTH : 1));
      return this.push(piece);
    };
    const pushed = (count: number): boolean => {
      if (!memory) return pushedFirst(holdable(SHARED.subarray(0, count)));
      const isFull = from === 0 && count === memory.length;
      const goOn = this.push(memory.subarray(from, from + count));
      from = this.readableLength === 0 && this.#hasGoneOn() ? 0 : from + count;
      const bytes = isFull ? Math.min(PIECE_BYTES_MAX, memory.length * GROWTH) : memory.length;
      if (bytes > memory.length || memory.length - from < memory.length / 2) {
        memory = Buffer.allocUnsafeSlow(bytes);
        from = 0;
      }
      return goOn;
    };
    super({
      allowHalfOpen: true,
      onread: {
        buffer: () => this.#pouring?.down.buffer ?? memory?.subarray(from) ?? SHARED,
        callback: (count, filled) =>
          this.#pouring ? poured(this.#pouring, holdable(filled.subarray(0, count))) : pushed(count),
      },
    });
    this.#bigReads = bigReads;
  }

  /** Asked after each piece, until the next such call. */
  reuseWhen(hasGoneOn: () => boolean): void {
    this.#hasGoneOn = hasGoneOn;
  }

  /** That many bytes more go to the browser; whatever follows goes nowhere. The HTTP client hears of ends and errors only. */
  pour(browser: Socket, bytes: number, done: () => void): void {
    const down = new Downstream(this.#bigReads);
    this.once('close', () => down.close());
    down.open(browser, () => this.resume());
    this.#pouring = { down, done, left: bytes };
    this.resume();
  }
}

function poured(pouring: Pouring, piece: Uint8Array): boolean {
  if (pouring.left === 0) return false;
  const wanted = piece.subarray(0, pouring.left);
  pouring.left -= wanted.length;
  const goOn = pouring.down.arrived(wanted);
  if (pouring.left > 0) return goOn;
  pouring.done();
  return false;
}
