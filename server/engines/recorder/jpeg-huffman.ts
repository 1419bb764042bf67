// Reads and writes the entropy-coded bits of a JPEG. Writes with the standard codes of the specification (annex K),
// which have a code for every symbol.

/**
 * Returns a lookup table. For each 16-bit value, the table contains the length and the symbol of the code with which
 * the value begins.
 */
export function decodeTableOf(counts: Uint8Array, symbols: Uint8Array): Uint16Array {
  const table = new Uint16Array(65_536);
  let code = 0;
  let symbolIndex = 0;
  for (let length = 1; length <= 16; length++) {
    for (let index = 0; index < (counts[length - 1] ?? 0); index++) {
      const from = code << (16 - length);
      table.fill((length << 8) | (symbols[symbolIndex++] ?? 0), from, from + (1 << (16 - length)));
      code++;
    }
    code <<= 1;
  }
  return table;
}

export interface HuffmanCode {
  readonly codes: Uint16Array;
  readonly lengths: Uint8Array;
}

export class BitReader {
  readonly #bytes: Buffer;
  #at = 0;
  #bitBuffer = 0;
  #bitCount = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  readSymbol(table: Uint16Array): number {
    this.#fillBits();
    const tableEntry = table[(this.#bitBuffer >>> (this.#bitCount - 16)) & 0xffff] ?? 0;
    const length = tableEntry >> 8;
    if (length === 0) throw new Error('the scan contains an invalid Huffman code');
    this.#bitCount -= length;
    return tableEntry & 0xff;
  }

  readBits(length: number): number {
    if (length === 0) return 0;
    this.#fillBits();
    this.#bitCount -= length;
    return (this.#bitBuffer >>> this.#bitCount) & ((1 << length) - 1);
  }

  /** Reads a signed number of `length` bits, in JPEG's representation. */
  readSigned(length: number): number {
    if (length > 11) throw new Error('a coefficient is too large');
    const value = this.readBits(length);
    return length === 0 || value >= 1 << (length - 1) ? value : value - (1 << length) + 1;
  }

  /** Makes at least 16 bits available. After the end of the data, the bits are zeros. */
  #fillBits(): void {
    while (this.#bitCount <= 16) {
      let byte = this.#bytes[this.#at] ?? 0;
      if (byte === 0xff) {
        if (this.#bytes[this.#at + 1] === 0) this.#at += 2;
        else byte = 0; // a marker ends the data
      } else this.#at++;
      this.#bitBuffer = ((this.#bitBuffer << 8) | byte) >>> 0;
      this.#bitCount += 8;
    }
  }
}

export class BitWriter {
  #bytes: Buffer;
  #at = 0;
  #bitBuffer = 0;
  #bitCount = 0;

  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafe(Math.ceil(bytes) + 1024);
  }

  /** Writes a coefficient that follows `zeros` zeros: the symbol, and the bits of its signed value. */
  writeCoefficient(code: HuffmanCode, zeros: number, value: number): void {
    const magnitude = Math.abs(value);
    const bits = magnitude === 0 ? 0 : 32 - Math.clz32(magnitude);
    this.writeSymbol(code, (zeros << 4) | bits, value < 0 ? value + (1 << bits) - 1 : value, bits);
  }

  writeSymbol({ codes, lengths }: HuffmanCode, symbol: number, value: number, bits: number): void {
    const length = lengths[symbol] ?? 0;
    if (length === 0) throw new Error(`the standard Huffman table has no code for the symbol ${symbol}`);
    this.#put(codes[symbol] ?? 0, length);
    if (bits > 0) this.#put(value, bits);
  }

  finish(): Buffer {
    if (this.#bitCount > 0) this.#put((1 << (8 - (this.#bitCount % 8))) - 1, 8 - (this.#bitCount % 8));
    return this.#bytes.subarray(0, this.#at);
  }

  #put(value: number, bits: number): void {
    this.#bitBuffer = (this.#bitBuffer << bits) | value;
    this.#bitCount += bits;
    while (this.#bitCount >= 8) {
      this.#bitCount -= 8;
      this.#writeByte((this.#bitBuffer >>> this.#bitCount) & 0xff);
    }
    this.#bitBuffer &= (1 << this.#bitCount) - 1;
  }

  #writeByte(byte: number): void {
    if (this.#at + 2 > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#bytes.length)]);
    this.#bytes[this.#at++] = byte;
    if (byte === 0xff) this.#bytes[this.#at++] = 0;
  }
}

// ---- the standard codes --------------------------------------------------------------------------------------------

const DC_SYMBOLS_HEX = '000102030405060708090a0b';
const STANDARD_TABLES = [
  { id: 0x00, counts: '00010501010101010100000000000000', symbols: DC_SYMBOLS_HEX },
  {
    id: 0x10,
    counts: '0002010303020403050504040000017d',
    symbols:
      '01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa',
  },
  { id: 0x01, counts: '00030101010101010101010000000000', symbols: DC_SYMBOLS_HEX },
  {
    id: 0x11,
    counts: '00020102040403040705040400010277',
    symbols:
      '0001020311040521310612415107617113223281081442 91a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa'.replace(
        ' ',
        '',
      ),
  },
].map(({ id, counts, symbols }) => ({ id, counts: Buffer.from(counts, 'hex'), symbols: Buffer.from(symbols, 'hex') }));

function standardCodeOf(tableId: number): HuffmanCode {
  const codes = new Uint16Array(256);
  const lengths = new Uint8Array(256);
  const table = STANDARD_TABLES.find(({ id }) => id === tableId);
  let code = 0;
  let symbolIndex = 0;
  for (let length = 1; table && length <= 16; length++) {
    for (let index = 0; index < (table.counts[length - 1] ?? 0); index++) {
      const symbol = table.symbols[symbolIndex++] ?? 0;
      codes[symbol] = code++;
      lengths[symbol] = length;
    }
    code <<= 1;
  }
  return { codes, lengths };
}

function tablesSegment(): Buffer {
  const content = Buffer.concat(
    STANDARD_TABLES.flatMap(({ id, counts, symbols }) => [Buffer.from([id]), counts, symbols]),
  );
  const head = Buffer.from([0xff, 0xc4, 0, 0]);
  head.writeUInt16BE(content.length + 2, 2);
  return Buffer.concat([head, content]);
}

export const standardCodes = {
  luma: { dc: standardCodeOf(0x00), ac: standardCodeOf(0x10) },
  chroma: { dc: standardCodeOf(0x01), ac: standardCodeOf(0x11) },
  /** The DHT segment with the tables. */
  segment: tablesSegment(),
};
