// Reads numbers and byte strings from untrusted data. Missing bytes are an error.

export class LevelDbError extends Error {
  override readonly name = 'LevelDbError';
}

export class ByteReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  take(length: number): Buffer {
    if (!(length >= 0) || length > this.remaining) throw new LevelDbError('unexpected end of data');
    this.#position += length;
    return this.#bytes.subarray(this.#position - length, this.#position);
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
    throw new LevelDbError('a varint is longer than 8 bytes');
  }

  /** Reads `count` numbers and returns the last one. */
  lastVarint(count: number): number {
    let lastValue = 0;
    for (let remainingCount = count; remainingCount > 0; remainingCount--) lastValue = this.varint();
    return lastValue;
  }

  /** Reads a length and returns that many of the bytes that follow. */
  lengthPrefixed(): Buffer {
    return this.take(this.varint());
  }
}

export function varintOf(value: number): Buffer {
  const bytes: number[] = [];
  let remainingValue = value;
  for (; remainingValue >= 128; remainingValue = Math.floor(remainingValue / 128))
    bytes.push((remainingValue % 128) | 0x80);
  return Buffer.from([...bytes, remainingValue]);
}

export const lengthPrefixedOf = (bytes: Buffer): Buffer => Buffer.concat([varintOf(bytes.length), bytes]);
