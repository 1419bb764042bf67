// Reads numbers and pieces out of bytes that may be anything: what is not there is an error, never a wrong answer.

export class LevelDbBroken extends Error {
  override readonly name = 'LevelDbBroken';
}

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Buffer {
    if (!(length >= 0) || length > this.left) throw new LevelDbBroken('it ends too early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  /** Numbers beyond 2^53 are none that we need. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 53; factor *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new LevelDbBroken('a number that is too long');
  }

  /** The last of so many. */
  varints(count: number): number {
    let last = 0;
    for (let left = count; left > 0; left--) last = this.varint();
    return last;
  }

  /** A piece with its length before it. */
  piece(): Buffer {
    return this.take(this.varint());
  }
}

export function varintOf(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  return Buffer.from([...bytes, left]);
}

export const pieceOf = (bytes: Buffer): Buffer => Buffer.concat([varintOf(bytes.length), bytes]);
