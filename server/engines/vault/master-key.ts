// A master key is used only to wrap data keys. Its id identifies the key that wraps a row, and reveals nothing about
// the key.
import { createHash } from 'node:crypto';
import { Fault } from '../../kit/fault.ts';
import { Secret } from '../../kit/secret.ts';
import { KEY_BYTES, type Key } from './envelope.ts';

export interface MasterKey {
  readonly id: string;
  readonly key: Key;
}

export interface MasterKeySource {
  /** The name of the source, for use in error messages. */
  readonly name: string;
  /**
   * Returns all available keys. The first one is the key to use. `isFirst`: whether no data key has been wrapped yet.
   */
  read(options: { readonly isFirst: boolean }): Promise<readonly MasterKey[]>;
  /** Returns the key that replaces the one in use. From then on, `read` returns both keys. */
  next(currentId: string): Promise<MasterKey>;
  /** Removes all keys except those with these ids. */
  keepOnly(ids: ReadonlySet<string>): Promise<void>;
}

const ID_CHARACTERS = 16;

export function masterKeyOf(key: Key): MasterKey {
  const hash = createHash('sha256').update('berth master key').update(key.reveal());
  return { id: hash.digest('hex').slice(0, ID_CHARACTERS), key };
}

const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * Reads master keys. Each is written as 64 hexadecimal digits or as 32 bytes in base64. The keys are separated by
 * commas or whitespace. `from` names the source in the error message.
 */
export function readMasterKeys(text: string, from: string): readonly MasterKey[] {
  const tokens = text.split(/[\s,]+/).filter(word => word !== '');
  const keys = tokens.flatMap(token => {
    const bytes = HEX.test(token)
      ? Buffer.from(token, 'hex')
      : BASE64.test(token)
        ? Buffer.from(token, 'base64')
        : Buffer.alloc(0);
    return bytes.length === KEY_BYTES ? [masterKeyOf(new Secret(bytes))] : [];
  });
  if (keys.length > 0 && keys.length === tokens.length) return keys;
  throw new Fault('master_key_unusable', `${from} contains no master key, or contains text that is not a master key.`, {
    advice: 'A master key is 64 hexadecimal digits, or 32 bytes in base64. To create one, run `openssl rand -hex 32`.',
  });
}

export const masterKeyText = ({ key }: MasterKey): string => key.reveal().toString('hex');
