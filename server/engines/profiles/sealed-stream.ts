// AES-256-GCM over a stream, in chunks that are each authenticated before their bytes are passed on. A reader never
// sees bytes that were altered, reordered, truncated or sealed with another name. Each stream has its own key, derived
// from the data key, a random salt and the name.
//
//   magic 8 | salt 32 | chunk (64 KiB + tag 16) ... | last chunk (0 to 64 KiB + tag 16)
//
// Nonce: 7 zero bytes, the chunk's number (4), 1 for the last chunk and 0 for the others (1).
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { Chunks } from './chunks.ts';
import type { DataKey } from './context-keys.ts';

const MAGIC = Buffer.from('BERTHSL1');
const SALT_BYTES = 32;
const CHUNK_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const HEAD_BYTES = MAGIC.length + SALT_BYTES;

export class SealError extends Error {
  override readonly name = 'SealError';
}

/** Seals a stream: plain bytes in, sealed bytes out. */
export class Sealer extends Transform {
  readonly #key: Buffer;
  readonly #bufferedBytes = new Chunks();
  #chunkNumber = 0;

  constructor(key: DataKey, name: string) {
    super();
    const salt = randomBytes(SALT_BYTES);
    this.#key = deriveStreamKey(key, salt, name);
    this.push(Buffer.concat([MAGIC, salt]));
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.#bufferedBytes.add(bytes);
    // A full chunk is kept until another byte arrives, because it is the last chunk if the stream ends now.
    while (this.#bufferedBytes.length > CHUNK_BYTES) this.#seal(this.#bufferedBytes.read(CHUNK_BYTES), false);
    callback();
  }

  override _flush(callback: TransformCallback): void {
    this.#seal(this.#bufferedBytes.read(this.#bufferedBytes.length), true);
    callback();
  }

  #seal(plainChunk: Buffer, isLast: boolean): void {
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonceOf(this.#chunkNumber++, isLast));
    this.push(cipher.update(plainChunk));
    cipher.final();
    this.push(cipher.getAuthTag());
  }
}

/**
 * Opens a sealed stream: sealed bytes in, plain bytes out. Fails with SealError before it outputs a byte that is not
 * authentic.
 */
export class Opener extends Transform {
  readonly #key: DataKey;
  readonly #name: string;
  readonly #bufferedBytes = new Chunks();
  #streamKey: Buffer | undefined;
  #chunkNumber = 0;

  constructor(key: DataKey, name: string) {
    super();
    this.#key = key;
    this.#name = name;
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.#bufferedBytes.add(bytes);
    runWithCallback(callback, () => {
      this.#readHead();
      while (this.#streamKey && this.#bufferedBytes.length > CHUNK_BYTES + TAG_BYTES)
        this.#open(this.#bufferedBytes.read(CHUNK_BYTES + TAG_BYTES), false);
    });
  }

  override _flush(callback: TransformCallback): void {
    runWithCallback(callback, () => {
      if (!this.#streamKey || this.#bufferedBytes.length < TAG_BYTES)
        throw new SealError('the sealed data is truncated');
      this.#open(this.#bufferedBytes.read(this.#bufferedBytes.length), true);
    });
  }

  #readHead(): void {
    if (this.#streamKey || this.#bufferedBytes.length < HEAD_BYTES) return;
    if (!this.#bufferedBytes.read(MAGIC.length).equals(MAGIC)) throw new SealError('the data is not sealed');
    this.#streamKey = deriveStreamKey(this.#key, this.#bufferedBytes.read(SALT_BYTES), this.#name);
  }

  #open(sealedChunk: Buffer, isLast: boolean): void {
    if (!this.#streamKey) return;
    const nonce = nonceOf(this.#chunkNumber++, isLast);
    const decipher = createDecipheriv('aes-256-gcm', this.#streamKey, nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealedChunk.subarray(-TAG_BYTES));
    const plainChunk = decipher.update(sealedChunk.subarray(0, -TAG_BYTES));
    try {
      decipher.final();
    } catch (error) {
      throw new SealError('the sealed data was altered or the key is wrong', { cause: error });
    }
    this.push(plainChunk);
  }
}

function runWithCallback(callback: TransformCallback, work: () => void): void {
  try {
    work();
    callback();
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)));
  }
}

const deriveStreamKey = (key: DataKey, salt: Buffer, name: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key.reveal(), salt, name, 32));

function nonceOf(chunkNumber: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(chunkNumber, 7);
  nonce.writeUInt8(isLast ? 1 : 0, 11);
  return nonce;
}
