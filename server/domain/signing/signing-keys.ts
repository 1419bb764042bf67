// The installation's signing keys: one signs, the retired ones verify. The private part is sealed in the vault.
import type { JsonWebKeySet } from '../../../contract/signing-keys.ts';
import type { SigningKeyRow } from '../../engines/store/rows/vault.ts';
import type { Store } from '../../engines/store/store.ts';
import type { newSigningKey, Signer, sign, verified } from '../../engines/vault/signing.ts';
import type { Place, Vault } from '../../engines/vault/vault.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import type { JsonObject } from '../../kit/json.ts';

const DAY_MS = 24 * 3600_000;
/** After its end, a key is published for as long as what it signed is kept. */
const PUBLISHED_MS = 400 * DAY_MS;

export interface SigningKeysParts {
  readonly store: Pick<Store, 'signingKeys'>;
  readonly vault: Pick<Vault, 'seal' | 'open'>;
  readonly engine: {
    readonly newSigningKey: typeof newSigningKey;
    readonly sign: typeof sign;
    readonly verified: typeof verified;
  };
  /** The owner, in the vault, of what belongs to no application. */
  readonly installation: string;
  readonly clock: Clock;
}

export class SigningKeys {
  readonly #parts: SigningKeysParts;
  #signer: Signer | undefined;

  constructor(parts: SigningKeysParts) {
    this.#parts = parts;
  }

  /** Signs with the key that is in use now. */
  async sign(typ: string, payload: Uint8Array): Promise<string> {
    return this.#parts.engine.sign(await this.#current(), typ, payload);
  }

  /** What was signed, or undefined if none of our keys signed it as this type. */
  async verified(jws: string, typ: string): Promise<Buffer | undefined> {
    const keys = new Map((await this.#parts.store.signingKeys.all()).map(row => [row.kid, row.publicJwk]));
    return this.#parts.engine.verified(jws, typ, keys);
  }

  /** Returns the id of the key that signs from now on. */
  async rotate(): Promise<{ readonly kid: string }> {
    await this.#standing();
    const row = await this.#newRow();
    await this.#parts.store.signingKeys.rotate(row);
    return { kid: row.kid };
  }

  async jwks(): Promise<JsonWebKeySet> {
    await this.#standing();
    const since = plus(this.#parts.clock.now(), -PUBLISHED_MS);
    const rows = await this.#parts.store.signingKeys.all();
    return { keys: rows.filter(({ retiredAt }) => !retiredAt || retiredAt > since).map(publicView) };
  }

  async #current(): Promise<Signer> {
    const row = await this.#standing();
    if (this.#signer?.kid === row.kid) return this.#signer;
    const privateKey = await this.#parts.vault.open(this.#placeOf(row.kid), row.sealed);
    this.#signer = { kid: row.kid, privateKey };
    return this.#signer;
  }

  /** The key that signs; the first use makes it. */
  async #standing(): Promise<SigningKeyRow> {
    const { signingKeys } = this.#parts.store;
    const standing = await signingKeys.active();
    if (standing) return standing;
    await signingKeys.insertFirst(await this.#newRow());
    const made = await signingKeys.active();
    if (!made) throw new Error('there is no signing key');
    return made;
  }

  async #newRow(): Promise<SigningKeyRow> {
    const { engine, vault, clock } = this.#parts;
    const { kid, publicJwk, privateKey } = await engine.newSigningKey();
    const sealed = await vault.seal(this.#placeOf(kid), privateKey.reveal());
    return { kid, publicJwk, sealed, createdAt: clock.now() };
  }

  #placeOf(kid: string): Place {
    return { owner: this.#parts.installation, kind: 'signing_key', id: kid, version: 1 };
  }
}

const publicView = ({ kid, publicJwk, retiredAt }: SigningKeyRow): JsonWebKeySet['keys'][number] => ({
  ...{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', kid, x: textOf(publicJwk) },
  ...(retiredAt ? { berth_retired_at: retiredAt.toISOString() } : {}),
});

const textOf = ({ x }: JsonObject): string => (typeof x === 'string' ? x : '');
