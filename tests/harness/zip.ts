// Builds zip archives byte by byte, so that a test can choose any name, mode, flag, size and checksum. Also builds .crx
// files.
import { createHash, type KeyObject, sign } from 'node:crypto';
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  readonly name: string;
  readonly bytes?: string | Buffer;
  /** Unix mode including the file type. */
  readonly mode?: number;
  readonly flags?: number;
  /** 0 for stored, 8 for deflated (the default). */
  readonly method?: number;
  /** The declared size in bytes, if it differs from the real size. */
  readonly size?: number;
  readonly crc?: number;
}

const UTF8 = 0x800;

export function zip(entries: readonly ZipEntry[]): Buffer {
  const localRecords: Buffer[] = [];
  const centralRecords: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const { localRecord: local, centralRecord: record } = encodeEntry(entry, at);
    localRecords.push(local);
    centralRecords.push(record);
    at += local.length;
  }
  const directory = Buffer.concat(centralRecords);
  const endRecord = Buffer.alloc(22);
  endRecord.writeUInt32LE(0x06054b50, 0);
  endRecord.writeUInt16LE(entries.length, 8);
  endRecord.writeUInt16LE(entries.length, 10);
  endRecord.writeUInt32LE(directory.length, 12);
  endRecord.writeUInt32LE(at, 16);
  return Buffer.concat([...localRecords, directory, endRecord]);
}

function encodeEntry(entry: ZipEntry, at: number): { localRecord: Buffer; centralRecord: Buffer } {
  const { method = 8, flags = UTF8, mode = 0o100644 } = entry;
  const name = Buffer.from(entry.name);
  const bytes = Buffer.from(entry.bytes ?? '');
  const compressedBytes = method === 8 ? deflateRawSync(bytes) : bytes;
  const commonFields = Buffer.alloc(26);
  commonFields.writeUInt16LE(20, 0);
  commonFields.writeUInt16LE(flags, 2);
  commonFields.writeUInt16LE(method, 4);
  commonFields.writeUInt32LE(0x5a21, 8);
  commonFields.writeUInt32LE(entry.crc ?? crc32(bytes), 10);
  commonFields.writeUInt32LE(compressedBytes.length, 14);
  commonFields.writeUInt32LE(entry.size ?? bytes.length, 18);
  commonFields.writeUInt16LE(name.length, 22);
  const localRecord = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), commonFields, name, compressedBytes]);
  const centralTail = Buffer.alloc(14);
  centralTail.writeUInt32LE((mode << 16) >>> 0, 6);
  centralTail.writeUInt32LE(at, 10);
  const madeBy = Buffer.from([20, 3]); // Unix
  return {
    localRecord,
    centralRecord: Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), madeBy, commonFields, centralTail, name]),
  };
}

/** Builds a .crx file of version 3, signed with this key. */
export function createCrx3(
  archive: Buffer,
  key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
): Buffer {
  const der = key.publicKey.export({ type: 'spki', format: 'der' });
  const signedData = field(1, createHash('sha256').update(der).digest().subarray(0, 16));
  const signedBytes = Buffer.concat([Buffer.from('CRX3 SignedData\0'), uint32(signedData.length), signedData, archive]);
  const keyProof = Buffer.concat([field(1, der), field(2, sign('sha256', signedBytes, key.privateKey))]);
  const number = key.publicKey.asymmetricKeyType === 'ec' ? 3 : 2;
  const header = Buffer.concat([field(number, keyProof), field(10_000, signedData)]);
  return Buffer.concat([Buffer.from('Cr24'), uint32(3), uint32(header.length), header, archive]);
}

const field = (number: number, bytes: Buffer): Buffer =>
  Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 128))
    bytes.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
  return Buffer.from(bytes);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
