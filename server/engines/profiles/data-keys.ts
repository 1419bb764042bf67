// The data key of each context: random, and stored only wrapped with a key from the installation's secret. Deleting the
// wrapped key makes everything that was sealed with it unreadable.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { Secret } from '../../kit/secret.ts';

export type DataKey = Secret<Buffer>;

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The first byte of a wrapped key, so that the format can change. */
const FORMAT_VERSION = 1;

export class DataKeys {
  readonly #wrapping: Buffer;

  constructor(secret: Secret) {
    this.#wrapping = Buffer.from(
      hkdfSync('sha256', secret.reveal(), 'berth', 'wraps the data keys of contexts', KEY_BYTES),
    );
  }

  /** Creates a key that is bound to this id. */
  create(id: string): { readonly key: DataKey; readonly wrapped: Buffer } {
    const key = randomBytes(KEY_BYTES);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#wrapping, nonce).setAAD(Buffer.from(id));
    const sealed = Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()]);
    return { key: new Secret(key), wrapped: Buffer.concat([Buffer.of(FORMAT_VERSION), nonce, sealed]) };
  }

  /** Throws if the key was wrapped for another id or with another secret. */
  unwrap(id: string, wrapped: Buffer): DataKey {
    if (wrapped.length !== 1 + NONCE_BYTES + KEY_BYTES + TAG_BYTES || wrapped[0] !== FORMAT_VERSION)
      throw new Error('the data is not a wrapped data key');
    const nonce = wrapped.subarray(1, 1 + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#wrapping, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(id)).setAuthTag(wrapped.subarray(-TAG_BYTES));
    const key = decipher.update(wrapped.subarray(1 + NONCE_BYTES, -TAG_BYTES));
    return new Secret(Buffer.concat([key, decipher.final()]));
  }
}
