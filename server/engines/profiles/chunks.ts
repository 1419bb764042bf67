// A byte queue. Bytes can be added in parts of any size and read in parts of any other size, without repeated copies.

export class Chunks {
  #parts: Buffer[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#parts.push(bytes);
    this.#length += bytes.length;
  }

  /** Removes and returns exactly `length` bytes. Throws if there are fewer. */
  read(length: number): Buffer {
    if (length > this.#length) throw new RangeError(`expected ${length} bytes, found ${this.#length}`);
    const allBytes = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    if (!allBytes || length === 0) return Buffer.alloc(0);
    this.#parts = length < allBytes.length ? [allBytes.subarray(length)] : [];
    this.#length -= length;
    return allBytes.subarray(0, length);
  }
}
