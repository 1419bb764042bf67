// Writes data from the network to the browser's socket. A single buffer is reused each time the kernel has taken all of
// its data. No memory is allocated per chunk, no Node stream is used, and a slow browser causes backpressure.
import type { Socket } from 'node:net';
import type { BigReads } from './big-reads.ts';

const BUFFER_BYTES_FIRST = 16 * 1024;
const BUFFER_BYTES_SMALL = 64 * 1024;
/**
 * Size of the large buffer. With it, a large body takes half as much CPU time per byte as with the small buffer
 * (measured). Even larger buffers are slower.
 */
const BUFFER_BYTES_BIG = 512 * 1024;
const GROWTH_FACTOR = 4;

export class Downstream {
  readonly #bigReads: BigReads;
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES_FIRST);
  #isBig = false;
  #browser: Socket | undefined;
  #onWritable = (): void => {};
  /** Data that arrived before `open`. */
  #earlyBytes: Uint8Array | undefined;

  constructor(bigReads: BigReads) {
    this.#bigReads = bigReads;
  }

  /** The buffer for the next read. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  /** Starts writing to the browser. `onWritable` is called when reading may continue. */
  open(browser: Socket, onWritable: () => void): void {
    this.#browser = browser;
    this.#onWritable = onWritable;
    if (this.#earlyBytes) browser.write(this.#earlyBytes, onWritable);
    this.#earlyBytes = undefined;
  }

  /** Writes a chunk. Returns whether reading may continue now. */
  write(chunk: Uint8Array): boolean {
    const browser = this.#browser;
    if (!browser) {
      this.#earlyBytes = chunk;
      return false;
    }
    let isWaiting = false;
    browser.write(chunk, () => {
      if (isWaiting) this.#onWritable();
    });
    // If the kernel has not yet taken the whole chunk, the buffer is still in use.
    isWaiting = browser.writableLength > 0;
    if (!isWaiting && chunk.length === this.#buffer.length) this.#grow();
    return !isWaiting;
  }

  /** Call when nothing more will be read. Idempotent. */
  close(): void {
    if (this.#isBig) this.#bigReads.release();
    this.#isBig = false;
  }

  #grow(): void {
    if (this.#isBig) return;
    const newLength = this.#buffer.length * GROWTH_FACTOR;
    this.#isBig = newLength > BUFFER_BYTES_SMALL && this.#bigReads.acquire();
    if (newLength <= BUFFER_BYTES_SMALL || this.#isBig)
      this.#buffer = Buffer.allocUnsafeSlow(this.#isBig ? BUFFER_BYTES_BIG : newLength);
  }
}
