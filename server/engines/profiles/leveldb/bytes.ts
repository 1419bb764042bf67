// Reads numbers and byte strings from untrusted data. Missing bytes are an error.

export class LevelDbError extends Error {
  override readonly name = 'LevelDbError';
}

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Buffer {
    if (!(length >= 0) || length > this.remaining) throw new LevelDbError('the data ends too early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  /** Numbers above 2^53 are not supported. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 53; factor *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new LevelDbError('a number is too long');
  }

  /** Reads this many numbers and returns the last. */
  lastVarint(count: number): number {
    let last = 0;
    for (let left = count; left > 0; left--) last = this.varint();
    return last;
  }

  /** Reads a length and returns as many bytes. */
  lengthPrefixed(): Buffer {
    return this.take(this.varint());
  }
}

export function varintOf(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  return Buffer.from([...bytes, left]);
}

export const lengthPrefixedOf = (bytes: Buffer): Buffer => Buffer.concat([varintOf(bytes.length), bytes]);
