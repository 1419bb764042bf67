// AES-256-GCM with a random nonce. Sealed data can be opened only with the same key and the same associated data.
// Layout in bytes: format (1), nonce (12), ciphertext, tag (16).
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Secret } from '../../kit/secret.ts';

export type Key = Secret<Buffer>;

const CIPHER = 'aes-256-gcm';
/** Format 1 was used for context keys before there was a vault. */
const FORMAT = 2;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

export const newKey = (): Key => new Secret(randomBytes(KEY_BYTES));

export function seal(key: Key, plaintext: Uint8Array, associatedData: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.reveal(), nonce).setAAD(Buffer.from(associatedData));
  const body = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([Buffer.of(FORMAT), nonce, body, cipher.getAuthTag()]);
}

/** Throws if the data was altered, or was sealed with another key or other associated data. */
export function open(key: Key, sealedBytes: Buffer, associatedData: string): Secret<Buffer> {
  if (sealedBytes[0] !== FORMAT || sealedBytes.length < 1 + NONCE_BYTES + TAG_BYTES)
    throw new Error('the sealed data has an unknown format or is too short');
  const nonce = sealedBytes.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key.reveal(), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(associatedData)).setAuthTag(sealedBytes.subarray(-TAG_BYTES));
  const plain = decipher.update(sealedBytes.subarray(1 + NONCE_BYTES, -TAG_BYTES));
  return new Secret(Buffer.concat([plain, decipher.final()]));
}
