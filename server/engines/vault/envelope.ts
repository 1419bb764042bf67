// AES-256-GCM with a random nonce. Sealed data opens only with the same key and the same additional data. The layout in
// bytes: format (1), nonce (12), ciphertext, tag (16).
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

export function seal(key: Key, plain: Uint8Array, associatedData: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.reveal(), nonce).setAAD(Buffer.from(associatedData));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.of(FORMAT), nonce, body, cipher.getAuthTag()]);
}

/** Throws if the data was altered, or sealed with another key or other additional data. */
export function open(key: Key, sealed: Buffer, associatedData: string): Secret<Buffer> {
  if (sealed[0] !== FORMAT || sealed.length < 1 + NONCE_BYTES + TAG_BYTES)
    throw new Error('these bytes are not sealed');
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key.reveal(), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(associatedData)).setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = decipher.update(sealed.subarray(1 + NONCE_BYTES, -TAG_BYTES));
  return new Secret(Buffer.concat([plain, decipher.final()]));
}
