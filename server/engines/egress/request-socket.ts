// The outbound socket for plain HTTP requests. Node's HTTP client sees an ordinary stream. The read buffer grows when a
// lot of data arrives, and is reused once its data has been written, because a new buffer for each read takes a third
// more CPU time. Large bodies can be spliced to the browser's socket.
import { Socket } from 'node:net';
import type { BigReads } from './big-reads.ts';
import { Downstream } from './downstream.ts';

const PIECE_BYTES_FIRST = 16 * 1024;
/**
 * Shared by all sockets for their first reads, because a separate buffer for each small response would cause garbage
 * collections. The data is copied out in the same turn of the event loop.
 */
const SHARED_BUFFER = Buffer.allocUnsafeSlow(PIECE_BYTES_FIRST);
const PIECE_BYTES_MAX = 256 * 1024;
const GROWTH_FACTOR = 4;

interface Splice {
  readonly downstream: Downstream;
  readonly onDone: () => void;
  remainingBytes: number;
}

/** Returns a chunk that stays valid after this turn of the event loop. */
const copyIfShared = (chunk: Uint8Array): Uint8Array =>
  chunk.buffer === SHARED_BUFFER.buffer ? Buffer.from(chunk) : chunk;

export class RequestSocket extends Socket {
  readonly #bigReads: BigReads;
  /** Whether the kernel has taken all data that was read, so that the memory of the read buffer can be reused. */
  #isFlushed = (): boolean => false;
  #splice: Splice | undefined;

  constructor(bigReads: BigReads) {
    let buffer: Buffer | undefined;
    let offset = 0;
    const pushFirst = (piece: Uint8Array): boolean => {
      if (this.bytesRead >= PIECE_BYTES_FIRST)
        buffer = Buffer.allocUnsafeSlow(PIECE_BYTES_FIRST * (piece.length === PIECE_BYTES_FIRST ? GROWTH_FACTOR : 1));
      return this.push(piece);
    };
    const push = (count: number): boolean => {
      if (!buffer) return pushFirst(copyIfShared(SHARED_BUFFER.subarray(0, count)));
      const isFull = offset === 0 && count === buffer.length;
      const mayContinue = this.push(buffer.subarray(offset, offset + count));
      offset = this.readableLength === 0 && this.#isFlushed() ? 0 : offset + count;
      const nextLength = isFull ? Math.min(PIECE_BYTES_MAX, buffer.length * GROWTH_FACTOR) : buffer.length;
      if (nextLength > buffer.length || buffer.length - offset < buffer.length / 2) {
        buffer = Buffer.allocUnsafeSlow(nextLength);
        offset = 0;
      }
      return mayContinue;
    };
    super({
      allowHalfOpen: true,
      onread: {
        buffer: () => this.#splice?.downstream.buffer ?? buffer?.subarray(offset) ?? SHARED_BUFFER,
        callback: (count, filledBuffer) =>
          this.#splice ? writeSpliced(this.#splice, copyIfShared(filledBuffer.subarray(0, count))) : push(count),
      },
    });
    this.#bigReads = bigReads;
  }

  /** Sets `isFlushed`, which is called after each read to decide whether the memory can be reused. */
  reuseWhen(isFlushed: () => boolean): void {
    this.#isFlushed = isFlushed;
  }

  /**
   * Sends the next `bytes` bytes to the browser and drops all later bytes. The HTTP client then receives only the end
   * of the stream and errors.
   */
  spliceTo(browser: Socket, bytes: number, onDone: () => void): void {
    const downstream = new Downstream(this.#bigReads);
    this.once('close', () => downstream.close());
    downstream.open(browser, () => this.resume());
    this.#splice = { downstream, onDone, remainingBytes: bytes };
    this.resume();
  }
}

function writeSpliced(splice: Splice, piece: Uint8Array): boolean {
  if (splice.remainingBytes === 0) return false;
  const splicedBytes = piece.subarray(0, splice.remainingBytes);
  splice.remainingBytes -= splicedBytes.length;
  const mayContinue = splice.downstream.write(splicedBytes);
  if (splice.remainingBytes > 0) return mayContinue;
  splice.onDone();
  return false;
}
