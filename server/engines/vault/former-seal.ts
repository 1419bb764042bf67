// Opens data that was sealed before there was a vault, with keys derived from the installation's secret. Nothing is
// sealed this way anymore.
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { Secret } from '../../kit/secret.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The value of the first byte of a wrapped key. */
const KEY_FORMAT = 1;

export const isFormerContextKey = (wrapped: Buffer): boolean => wrapped[0] === KEY_FORMAT;

/**
 * Opens the data key of a context. The wrapped key consists of the format byte 1, a nonce, the encrypted key and a tag,
 * and is bound to the id of the context.
 */
export function openFormerContextKey(secret: Secret, context: string, wrapped: Buffer): Secret<Buffer> {
  if (wrapped.length !== 1 + NONCE_BYTES + KEY_BYTES + TAG_BYTES) throw new Error('the data is not a wrapped data key');
  const key = deriveKey(secret, 'berth', 'wraps the data keys of contexts');
  const [nonce, body] = [wrapped.subarray(1, 1 + NONCE_BYTES), wrapped.subarray(1 + NONCE_BYTES, -TAG_BYTES)];
  return new Secret(open(key, { nonce, body, tag: wrapped.subarray(-TAG_BYTES), associatedData: context }));
}

/**
 * Opens the proxy routes of a session. The sealed string is a nonce, a tag and the ciphertext, encoded together in
 * base64url. It is bound to the id of the session.
 */
export function openFormerRoutes(secret: Secret, session: string, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const body = bytes.subarray(NONCE_BYTES + TAG_BYTES);
  return open(deriveKey(secret, '', 'berth seal: proxies'), { nonce, body, tag, associatedData: session }).toString();
}

const deriveKey = (secret: Secret, salt: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret.reveal(), salt, purpose, KEY_BYTES));

function open(
  key: Buffer,
  { nonce, body, tag, associatedData }: { nonce: Buffer; body: Buffer; tag: Buffer; associatedData: string },
): Buffer {
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(associatedData)).setAuthTag(tag);
  return Buffer.concat([decipher.update(body), decipher.final()]);
}
