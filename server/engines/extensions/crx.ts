// Reads the header of a .crx file: the key that signed the archive, and the offset of the archive. Only version 3 is
// accepted, and only with a valid signature by the extension's own key.
import { createHash, createPublicKey, createVerify, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { ArchiveLocation } from './archive.ts';
import { refusal } from './refusal.ts';

const MAGIC = 'Cr24';
const VERSION = 3;
const FIXED_HEADER_BYTES = 12;
const HEADER_BYTES_MAX = 1024 ** 2;
const ID_BYTES = 16;
/** Field numbers in the Protocol Buffers messages of the header. */
const FIELD_NUMBERS = { rsa: 2, ecdsa: 3, signedData: 10_000, key: 1, signature: 2, id: 1 } as const;

export interface Envelope {
  readonly archive: ArchiveLocation;
  /** The extension's own key, from which its id is derived. Undefined for a plain .zip. */
  readonly publicKey?: Buffer;
}

export async function openEnvelope(path: string): Promise<Envelope> {
  const { head, size } = await readHead(path);
  if (head.subarray(0, 4).toString('latin1') !== MAGIC) return { archive: { path, start: 0, end: size } };
  const version = head.length >= FIXED_HEADER_BYTES ? head.readUInt32LE(4) : 0;
  if (version !== VERSION)
    throw refusal(
      'crx_version',
      `it is a .crx of version ${version}`,
      'Pack the extension as .crx version 3, or upload a .zip.',
    );
  const headerBytes = head.readUInt32LE(8);
  const start = FIXED_HEADER_BYTES + headerBytes;
  if (headerBytes > HEADER_BYTES_MAX || start > size) throw badSignature('the header is truncated');
  const archive = { path, start, end: size };
  return { archive, publicKey: await verifiedKey(head.subarray(FIXED_HEADER_BYTES, start), archive) };
}

async function readHead(path: string): Promise<{ head: Buffer; size: number }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const head = Buffer.alloc(Math.min(size, FIXED_HEADER_BYTES + HEADER_BYTES_MAX));
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    return { head: head.subarray(0, bytesRead), size };
  } finally {
    await file.close();
  }
}

/**
 * Returns the extension's own key if its signature is valid. This is the key whose id is in the signed data. Other
 * signatures are ignored.
 */
async function verifiedKey(header: Buffer, archive: ArchiveLocation): Promise<Buffer> {
  const fields = readFields(header);
  const signedData = fields.find(({ number }) => number === FIELD_NUMBERS.signedData)?.bytes;
  const id = signedData && readFields(signedData).find(({ number }) => number === FIELD_NUMBERS.id)?.bytes;
  if (!signedData || id?.length !== ID_BYTES) throw badSignature('the header does not contain the id of the extension');
  for (const { number, bytes } of fields) {
    if (number !== FIELD_NUMBERS.rsa && number !== FIELD_NUMBERS.ecdsa) continue;
    const signatureFields = readFields(bytes);
    const key = signatureFields.find(({ number }) => number === FIELD_NUMBERS.key)?.bytes;
    const signature = signatureFields.find(({ number }) => number === FIELD_NUMBERS.signature)?.bytes;
    if (!key || !signature || !idOf(key).equals(id)) continue;
    if (await isSignatureValid(readSupportedKey(key), signature, signedData, archive)) return Buffer.from(key);
    throw badSignature('the archive was changed after it was signed');
  }
  throw badSignature('the archive is not signed with the key of the extension');
}

const idOf = (publicKey: Buffer): Buffer => createHash('sha256').update(publicKey).digest().subarray(0, ID_BYTES);

function readSupportedKey(der: Buffer): KeyObject {
  const key = readKey(der);
  // Other kinds of keys cannot verify a signature over a hash.
  if (key.asymmetricKeyType !== 'rsa' && key.asymmetricKeyType !== 'ec')
    throw badSignature('the key is neither an RSA nor an ECDSA key');
  return key;
}

function readKey(der: Buffer): KeyObject {
  try {
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    throw badSignature('the key cannot be read');
  }
}

async function isSignatureValid(
  key: KeyObject,
  signature: Buffer,
  signedData: Buffer,
  archive: ArchiveLocation,
): Promise<boolean> {
  const lengthPrefix = Buffer.alloc(4);
  lengthPrefix.writeUInt32LE(signedData.length);
  const verifier = createVerify('sha256');
  for (const part of [Buffer.from('CRX3 SignedData\0'), lengthPrefix, signedData]) verifier.update(part);
  if (archive.end > archive.start)
    await pipeline(createReadStream(archive.path, { start: archive.start, end: archive.end - 1 }), verifier);
  return verifier.verify(key, signature);
}

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
}

/** Reads a protocol buffer in which every field contains bytes. */
function readFields(buffer: Buffer): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let shift = 1; shift <= 128 ** 4; shift *= 128) {
      const byte = buffer[at++];
      if (byte === undefined) throw badSignature('the header is damaged');
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
    throw badSignature('the header is damaged');
  };
  while (at < buffer.length) {
    const tag = readVarint();
    const length = readVarint();
    if (tag % 8 !== 2 || at + length > buffer.length) throw badSignature('the header is damaged');
    fields.push({ number: Math.floor(tag / 8), bytes: buffer.subarray(at, at + length) });
    at += length;
  }
  return fields;
}

const badSignature = (problem: string) =>
  refusal(
    'crx_signature',
    `the signature of the .crx cannot be verified: ${problem}`,
    'Download or pack the extension again.',
  );
