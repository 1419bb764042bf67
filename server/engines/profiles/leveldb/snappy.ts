// Unpacks Snappy's raw format, in which LevelDB compresses the blocks of its tables.
import { ByteReader, LevelDbBroken } from './bytes.ts';

/** LevelDB's blocks are some kilobytes; a value may be as large as a site's whole quota. */
const UNPACKED_BYTES_MAX = 64 * 1024 ** 2;

export function unsnap(packed: Buffer): Buffer {
  const source = new ByteReader(packed);
  const length = source.varint();
  if (length > UNPACKED_BYTES_MAX) throw new LevelDbBroken('a block that is too large');
  const target = Buffer.alloc(length);
  let at = 0;
  while (source.left > 0) {
    const tag = source.byte();
    at = (tag & 3) === 0 ? copyLiteral(source, tag, target, at) : copyBack(source, tag, target, at);
  }
  if (at !== length) throw new LevelDbBroken('a block that is shorter than it says');
  return target;
}

function copyLiteral(source: ByteReader, tag: number, target: Buffer, from: number): number {
  const short = tag >> 2;
  const bytes = source.take(1 + (short < 60 ? short : source.take(short - 59).readUIntLE(0, short - 59)));
  if (from + bytes.length > target.length) throw new LevelDbBroken('a block that is longer than it says');
  bytes.copy(target, from);
  return from + bytes.length;
}

/** Repeats what was unpacked before, byte by byte: it may overlap itself. */
function copyBack(source: ByteReader, tag: number, target: Buffer, from: number): number {
  const near = (tag & 3) === 1;
  const length = near ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2);
  const offsetBytes = (tag & 3) === 2 ? 2 : 4;
  const offset = near ? ((tag >> 5) << 8) + source.byte() : source.take(offsetBytes).readUIntLE(0, offsetBytes);
  if (offset === 0 || offset > from || from + length > target.length)
    throw new LevelDbBroken('a block that leads elsewhere');
  for (let at = from; at < from + length; at++) target[at] = target[at - offset] ?? 0;
  return from + length;
}
