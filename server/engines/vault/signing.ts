// Ed25519 keys and compact JWS (RFC 7515) signed with them. The id of a key is its thumbprint (RFC 7638).
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign as signWith } from 'node:crypto';
import { CompactSign, calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import type { JsonObject } from '../../kit/json.ts';
import { Secret } from '../../kit/secret.ts';

export interface PublicKey {
  readonly kid: string;
  readonly jwk: JsonObject;
}

export interface NewSigningKey extends PublicKey {
  readonly privateKey: Secret<Buffer>;
}

/** EdDSA, and its newer name (RFC 9864). */
const ALGORITHMS = ['EdDSA', 'Ed25519'];
/** Headers with which a JWS could select the key or the rules for its own verification. */
const REFUSED_HEADERS = ['jwk', 'jku', 'x5c', 'x5u', 'crit'];

export async function newSigningKey(): Promise<NewSigningKey> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const secret = new Secret(privateKey.export({ format: 'der', type: 'pkcs8' }));
  return { ...(await publicKeyOf(secret)), privateKey: secret };
}

export async function publicKeyOf(privateKey: Secret<Buffer>): Promise<PublicKey> {
  const { x = '' } = createPublicKey(keyObjectOf(privateKey)).export({ format: 'jwk' });
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  const kid = await calculateJwkThumbprint(jwk);
  return { kid, jwk: { ...jwk, kid, alg: 'EdDSA', use: 'sig' } };
}

const keyObjectOf = (privateKey: Secret<Buffer>) =>
  createPrivateKey({ key: privateKey.reveal(), format: 'der', type: 'pkcs8' });

export interface Signer {
  readonly kid: string;
  readonly privateKey: Secret<Buffer>;
}

export function sign({ kid, privateKey }: Signer, typ: string, payload: Uint8Array): Promise<string> {
  return new CompactSign(payload).setProtectedHeader({ alg: 'EdDSA', typ, kid }).sign(keyObjectOf(privateKey));
}

/**
 * Makes a plain Ed25519 signature. The bytes must not begin like a JWS; otherwise the signature could also be valid for
 * a JWS.
 */
export const signBytes = ({ privateKey }: Signer, bytes: Uint8Array): Buffer =>
  signWith(null, bytes, keyObjectOf(privateKey));

/**
 * Returns the payload, or undefined if none of these keys signed the JWS with the type `typ`. `jwks` is keyed by kid.
 */
export async function verify(
  jws: string,
  typ: string,
  jwks: ReadonlyMap<string, JsonObject>,
): Promise<Buffer | undefined> {
  try {
    const { payload, protectedHeader } = await compactVerify(
      jws,
      ({ kid = '' }) => importJWK({ ...jwks.get(kid) }, 'EdDSA'),
      { algorithms: ALGORITHMS },
    );
    const isPlain = REFUSED_HEADERS.every(name => !(name in protectedHeader));
    return isPlain && protectedHeader.typ === typ ? Buffer.from(payload) : undefined;
  } catch {
    return undefined;
  }
}
