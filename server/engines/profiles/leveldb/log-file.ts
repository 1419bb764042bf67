// Reads and writes LevelDB's log format, which LevelDB uses for its write-ahead log and its manifest. A file consists
// of blocks of 32 KiB. A record that does not fit into the rest of a block is split.
import { crc32c } from './crc32c.ts';

const BLOCK_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4] as const;

/** Yields complete records. An unfinished record at the end of the file is ignored. */
export function* logRecords(file: Buffer): Generator<Buffer, void> {
  let recordParts: Buffer[] = [];
  for (let at = 0; at + HEADER_BYTES <= file.length; ) {
    const roomInBlock = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (roomInBlock < HEADER_BYTES) {
      at += roomInBlock;
      continue;
    }
    const [length, kind] = [file.readUInt16LE(at + 4), file.readUInt8(at + 6)];
    const end = at + HEADER_BYTES + length;
    const isWhole = kind >= FULL && kind <= LAST && length <= roomInBlock - HEADER_BYTES && end <= file.length;
    if (!isWhole || file.readUInt32LE(at) !== mask(crc32c(file.subarray(at + 6, end)))) return;
    const part = file.subarray(at + HEADER_BYTES, end);
    if (kind === FULL || kind === FIRST) recordParts = [part];
    else recordParts.push(part);
    if (kind === FULL || kind === LAST) yield Buffer.concat(recordParts);
    at = end;
  }
}

export function logFileOf(records: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  let writtenBytes = 0;
  const put = (part: Buffer): void => {
    parts.push(part);
    writtenBytes += part.length;
  };
  for (const record of records) {
    let at = 0;
    do {
      if (BLOCK_BYTES - (writtenBytes % BLOCK_BYTES) < HEADER_BYTES)
        put(Buffer.alloc(BLOCK_BYTES - (writtenBytes % BLOCK_BYTES)));
      const room = BLOCK_BYTES - (writtenBytes % BLOCK_BYTES) - HEADER_BYTES;
      const part = record.subarray(at, at + room);
      const [isFirst, isLast] = [at === 0, at + part.length === record.length];
      put(encodeRecordPart(part, isFirst ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE));
      at += part.length;
    } while (at < record.length);
  }
  return Buffer.concat(parts);
}

function encodeRecordPart(part: Buffer, kind: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(mask(crc32c(Buffer.concat([Buffer.of(kind), part]))));
  header.writeUInt16LE(part.length, 4);
  header.writeUInt8(kind, 6);
  return Buffer.concat([header, part]);
}

/** LevelDB masks stored checksums, because the CRC of data that contains CRCs is weak. */
const mask = (crc: number): number => ((((crc >>> 15) | (crc << 17)) >>> 0) + 0xa282ead8) >>> 0;
