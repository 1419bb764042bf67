// The installation's signing keys: the active key signs, and retired keys only verify. The private keys are sealed in
// the vault.
import type { JsonWebKeySet } from '../../../contract/signing-keys.ts';
import type { SigningKeyRow } from '../../engines/store/rows/vault.ts';
import type { Store } from '../../engines/store/store.ts';
import type {
  newSigningKey,
  PublicKey,
  publicKeyOf,
  Signer,
  sign,
  signBytes,
  verify,
} from '../../engines/vault/signing.ts';
import type { SealBinding, Vault } from '../../engines/vault/vault.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';

const DAY_MS = 24 * 3600_000;
/** How long a retired key is published: as long as anything that it signed is kept. */
const RETIRED_KEY_PUBLICATION_MS = 400 * DAY_MS;

export interface SigningKeysParts {
  readonly store: Pick<Store, 'signingKeys'>;
  readonly vault: Pick<Vault, 'seal' | 'open'>;
  readonly engine: {
    readonly newSigningKey: typeof newSigningKey;
    readonly publicKeyOf: typeof publicKeyOf;
    readonly sign: typeof sign;
    readonly signBytes: typeof signBytes;
    readonly verify: typeof verify;
  };
  /** The owner to which the vault assigns data that belongs to no application. */
  readonly installationOwner: string;
  readonly clock: Clock;
  readonly log: Log;
}

export class SigningKeys {
  readonly #parts: SigningKeysParts;
  #signer: Signer | undefined;
  /** Trusted public keys by `kid`. */
  readonly #trustedKeys = new Map<string, PublicKey>();

  constructor(parts: SigningKeysParts) {
    this.#parts = parts;
  }

  /** Signs with the active key. */
  async sign(typ: string, payload: Uint8Array): Promise<string> {
    return this.#parts.engine.sign(await this.#activeSigner(), typ, payload);
  }

  /** Returns the id of the key that is active now, and a function that signs messages with it. */
  async messageSigner(): Promise<{ readonly kid: string; sign(bytes: Uint8Array): Buffer }> {
    const signer = await this.#activeSigner();
    return { kid: signer.kid, sign: bytes => this.#parts.engine.signBytes(signer, bytes) };
  }

  /** Verifies a signature and returns the payload. Undefined if no trusted key signed it as this type. */
  async verify(jws: string, typ: string): Promise<Buffer | undefined> {
    const keys = await this.#keys();
    return this.#parts.engine.verify(jws, typ, new Map(keys.map(({ kid, jwk }) => [kid, jwk])));
  }

  /** Creates a new active key and returns its id. */
  async rotate(): Promise<{ readonly kid: string }> {
    await this.#activeRow();
    const row = await this.#newRow();
    await this.#parts.store.signingKeys.rotate(row);
    return { kid: row.kid };
  }

  async jwks(): Promise<JsonWebKeySet> {
    await this.#activeRow();
    const publishedSince = addMs(this.#parts.clock.now(), -RETIRED_KEY_PUBLICATION_MS);
    const publishedKeys = (await this.#keys()).filter(({ retiredAt }) => !retiredAt || retiredAt > publishedSince);
    return { keys: publishedKeys.map(publicView) };
  }

  /**
   * Returns the public keys. They are derived from the sealed private ones, so that a key inserted into the database is
   * not trusted.
   */
  async #keys(): Promise<ReadonlyArray<PublicKey & { readonly retiredAt?: Date }>> {
    const rows = await this.#parts.store.signingKeys.all();
    const keys = await Promise.all(
      rows.map(async row => {
        const key = await this.#publicKey(row);
        return key ? [{ ...key, ...(row.retiredAt ? { retiredAt: row.retiredAt } : {}) }] : [];
      }),
    );
    return keys.flat();
  }

  async #publicKey({ kid, sealed }: SigningKeyRow): Promise<PublicKey | undefined> {
    const trustedKey = this.#trustedKeys.get(kid);
    if (trustedKey) return trustedKey;
    const { vault, engine, log } = this.#parts;
    try {
      const key = await engine.publicKeyOf(await vault.open(this.#placeOf(kid), sealed));
      if (key.kid !== kid) throw new Error('the key does not match its thumbprint');
      this.#trustedKeys.set(kid, key);
      return key;
    } catch (error) {
      log.warn('signing_key.not_ours', { kid, reason: reason(error) });
      return undefined;
    }
  }

  async #activeSigner(): Promise<Signer> {
    const row = await this.#activeRow();
    if (this.#signer?.kid === row.kid) return this.#signer;
    const privateKey = await this.#parts.vault.open(this.#placeOf(row.kid), row.sealed);
    this.#signer = { kid: row.kid, privateKey };
    return this.#signer;
  }

  /** Returns the active key. Creates the first key if no key exists. */
  async #activeRow(): Promise<SigningKeyRow> {
    const { signingKeys } = this.#parts.store;
    const activeRow = await signingKeys.active();
    if (activeRow) return activeRow;
    await signingKeys.insertFirst(await this.#newRow());
    const createdRow = await signingKeys.active();
    if (!createdRow) throw new Error('no active signing key was found after the first one was created');
    return createdRow;
  }

  async #newRow(): Promise<SigningKeyRow> {
    const { engine, vault, clock } = this.#parts;
    const { kid, jwk: publicJwk, privateKey } = await engine.newSigningKey();
    const sealed = await vault.seal(this.#placeOf(kid), privateKey.reveal());
    return { kid, publicJwk, sealed, createdAt: clock.now() };
  }

  #placeOf(kid: string): SealBinding {
    return { owner: this.#parts.installationOwner, kind: 'signing_key', id: kid, version: 1 };
  }
}

const publicView = ({ kid, jwk, retiredAt }: PublicKey & { retiredAt?: Date }): JsonWebKeySet['keys'][number] => ({
  ...{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', kid, x: xCoordinateOf(jwk) },
  ...(retiredAt ? { berth_retired_at: retiredAt.toISOString() } : {}),
});

const xCoordinateOf = ({ x }: JsonObject): string => (typeof x === 'string' ? x : '');
