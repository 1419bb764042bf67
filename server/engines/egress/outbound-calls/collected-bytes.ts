// Collects bytes that arrive in parts into one buffer. A part of one byte takes one byte in the buffer, but about a
// hundred bytes in a list of parts.

const BUFFER_BYTES_MIN = 4096;

export class CollectedBytes {
  readonly #bytesMax: number;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a part. Returns false, and adds nothing, if the part does not fit. */
  add(part: Uint8Array): boolean {
    const newLength = this.#length + part.length;
    if (newLength > this.#bytesMax) return false;
    if (newLength > this.#buffer.length) this.#grow(newLength);
    this.#buffer.set(part, this.#length);
    this.#length = newLength;
    return true;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const newBuffer = Buffer.alloc(
      Math.min(this.#bytesMax, Math.max(BUFFER_BYTES_MIN, length, 2 * this.#buffer.length)),
    );
    newBuffer.set(this.bytes);
    this.#buffer = newBuffer;
  }
}
