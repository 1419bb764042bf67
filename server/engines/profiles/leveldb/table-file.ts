// Reads the entries of a LevelDB table file (`.ldb`).
import { ByteReader, LevelDbError } from './bytes.ts';
import { decompressSnappy } from './snappy.ts';

const FOOTER_BYTES = 48;
const MAGIC = 0xdb4775248b80fb57n;
const TRAILER_BYTES = 5;

export interface TableEntry {
  /** The key, followed by its sequence number and kind. */
  readonly key: Buffer;
  readonly value: Buffer;
}

export function* tableEntries(file: Buffer): Generator<TableEntry, void> {
  const footer = file.subarray(-FOOTER_BYTES);
  if (footer.length < FOOTER_BYTES || footer.readBigUInt64LE(FOOTER_BYTES - 8) !== MAGIC)
    throw new LevelDbError('a table has no valid footer');
  const handles = new ByteReader(footer);
  readHandle(handles);
  for (const { value } of blockEntries(readBlock(file, readHandle(handles))))
    yield* blockEntries(readBlock(file, readHandle(new ByteReader(value))));
}

interface Handle {
  readonly offset: number;
  readonly size: number;
}

const readHandle = (source: ByteReader): Handle => ({ offset: source.varint(), size: source.varint() });

function readBlock(file: Buffer, { offset, size }: Handle): Buffer {
  if (offset + size + TRAILER_BYTES > file.length) throw new LevelDbError('a block is outside the file');
  const bytes = file.subarray(offset, offset + size);
  const compressionType = file.readUInt8(offset + size);
  if (compressionType === 0) return bytes;
  if (compressionType === 1) return decompressSnappy(bytes);
  throw new LevelDbError(`a block has an unknown compression type: ${compressionType}`);
}

/**
 * Yields the entries of a block. A stored key omits the prefix that it shares with the previous key. The restart points
 * at the end of the block are not read.
 */
function* blockEntries(block: Buffer): Generator<TableEntry, void> {
  if (block.length < 4) throw new LevelDbError('a block is too short for its restart array');
  const restartCount = block.readUInt32LE(block.length - 4);
  const end = block.length - 4 - 4 * restartCount;
  if (end < 0) throw new LevelDbError('a block is too short for its restart array');
  const source = new ByteReader(block.subarray(0, end));
  let key = Buffer.alloc(0);
  while (source.remaining > 0) {
    const [sharedBytes, addedBytes, valueBytes] = [source.varint(), source.varint(), source.varint()];
    if (sharedBytes > key.length) throw new LevelDbError('the shared prefix of a key is longer than the previous key');
    key = Buffer.concat([key.subarray(0, sharedBytes), source.take(addedBytes)]);
    yield { key, value: source.take(valueBytes) };
  }
}
