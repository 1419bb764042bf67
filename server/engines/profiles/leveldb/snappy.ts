// Decompresses Snappy's raw format, which LevelDB uses for the blocks of its tables.
import { ByteReader, LevelDbError } from './bytes.ts';

/** A block is usually a few kilobytes long, but a single value may be as large as the quota of a site. */
const UNPACKED_BYTES_MAX = 64 * 1024 ** 2;

export function decompressSnappy(compressed: Buffer): Buffer {
  const source = new ByteReader(compressed);
  const length = source.varint();
  if (length > UNPACKED_BYTES_MAX)
    throw new LevelDbError(`a block is larger than ${UNPACKED_BYTES_MAX} bytes when decompressed`);
  const target = Buffer.alloc(length);
  let at = 0;
  while (source.remaining > 0) {
    const tag = source.byte();
    at = (tag & 3) === 0 ? copyLiteral(source, tag, target, at) : copyBack(source, tag, target, at);
  }
  if (at !== length) throw new LevelDbError('a block is shorter than its stated length');
  return target;
}

function copyLiteral(source: ByteReader, tag: number, target: Buffer, from: number): number {
  const lengthCode = tag >> 2;
  const bytes = source.take(
    1 + (lengthCode < 60 ? lengthCode : source.take(lengthCode - 59).readUIntLE(0, lengthCode - 59)),
  );
  if (from + bytes.length > target.length) throw new LevelDbError('a block is longer than its stated length');
  bytes.copy(target, from);
  return from + bytes.length;
}

/** Copies earlier output, byte by byte because source and target may overlap. */
function copyBack(source: ByteReader, tag: number, target: Buffer, from: number): number {
  const isNear = (tag & 3) === 1;
  const length = isNear ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2);
  const offsetBytes = (tag & 3) === 2 ? 2 : 4;
  const offset = isNear ? ((tag >> 5) << 8) + source.byte() : source.take(offsetBytes).readUIntLE(0, offsetBytes);
  if (offset === 0 || offset > from || from + length > target.length)
    throw new LevelDbError('a block has an invalid back reference');
  for (let at = from; at < from + length; at++) target[at] = target[at - offset] ?? 0;
  return from + length;
}
