// What comes from the outside, written to the browser's socket out of one buffer that is filled again once all of it is
// with the kernel: no memory is made for a piece, no stream stands between, and a slow browser holds the outside up.
import type { Socket } from 'node:net';
import type { BigReads } from './big-reads.ts';

const BUFFER_BYTES_FIRST = 16 * 1024;
const BUFFER_BYTES_SMALL = 64 * 1024;
/** Half the CPU time of a small one for each byte of a large body (measured); more than this costs time again. */
const BUFFER_BYTES_BIG = 512 * 1024;
const GROWTH = 4;

export class Downstream {
  readonly #bigReads: BigReads;
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES_FIRST);
  #isBig = false;
  #browser: Socket | undefined;
  #goOn = (): void => {};
  /** What came before there was anybody to give it to. */
  #early: Uint8Array | undefined;

  constructor(bigReads: BigReads) {
    this.#bigReads = bigReads;
  }

  /** What the next piece is read into. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  open(browser: Socket, goOn: () => void): void {
    this.#browser = browser;
    this.#goOn = goOn;
    if (this.#early) browser.write(this.#early, goOn);
    this.#early = undefined;
  }

  /** Says whether to go on reading. */
  arrived(piece: Uint8Array): boolean {
    const browser = this.#browser;
    if (!browser) {
      this.#early = piece;
      return false;
    }
    let waiting = false;
    browser.write(piece, () => {
      if (waiting) this.#goOn();
    });
    // Not all of it is with the kernel yet: the buffer is still needed.
    waiting = browser.writableLength > 0;
    if (!waiting && piece.length === this.#buffer.length) this.#grow();
    return !waiting;
  }

  /** Nothing is read any more. */
  close(): void {
    if (this.#isBig) this.#bigReads.giveBack();
    this.#isBig = false;
  }

  #grow(): void {
    if (this.#isBig) return;
    const bytes = this.#buffer.length * GROWTH;
    this.#isBig = bytes > BUFFER_BYTES_SMALL && this.#bigReads.take();
    if (bytes <= BUFFER_BYTES_SMALL || this.#isBig)
      this.#buffer = Buffer.allocUnsafeSlow(this.#isBig ? BUFFER_BYTES_BIG : bytes);
  }
}
