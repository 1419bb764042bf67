// The public key of a passkey as a JWK, so that its signatures can be verified by software that does not support COSE
// keys.

/** A public key, including the algorithm of the signatures. */
export type PasskeyJwk =
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly alg: 'ES256'; readonly x: string; readonly y: string }
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly alg: 'EdDSA'; readonly x: string }
  | { readonly kty: 'RSA'; readonly alg: 'RS256'; readonly n: string; readonly e: string }
  | { readonly kty: 'AKP'; readonly alg: 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87'; readonly pub: string };

const KTY = { okp: 1, ec2: 2, rsa: 3, akp: 7 } as const;
const CRV = { p256: 1, ed25519: 6 } as const;
const ALG = { es256: -7, eddsa: -8, rs256: -257 } as const;
const ML_DSA: ReadonlyMap<unknown, 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87'> = new Map([
  [-48, 'ML-DSA-44'],
  [-49, 'ML-DSA-65'],
  [-50, 'ML-DSA-87'],
]);

/** Converts a COSE key. Undefined for keys of types that cannot be registered. */
export async function passkeyJwk(cose: Uint8Array): Promise<PasskeyJwk | undefined> {
  const { decodeCredentialPublicKey } = await import('@simplewebauthn/server/helpers');
  const key = decodeCredentialPublicKey(new Uint8Array(cose)) as unknown as ReadonlyMap<number, unknown>;
  const [kty, alg] = [key.get(1), key.get(3)];
  const base64urlAt = (label: number): string | undefined => {
    const value = key.get(label);
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64url') : undefined;
  };
  if (kty === KTY.rsa && alg === ALG.rs256) {
    const [n, e] = [base64urlAt(-1), base64urlAt(-2)];
    return n !== undefined && e !== undefined ? { kty: 'RSA', alg: 'RS256', n, e } : undefined;
  }
  if (kty === KTY.akp) {
    const [pub, name] = [base64urlAt(-1), ML_DSA.get(alg)];
    return pub !== undefined && name !== undefined ? { kty: 'AKP', alg: name, pub } : undefined;
  }
  const [crv, x] = [key.get(-1), base64urlAt(-2)];
  if (kty === KTY.ec2 && alg === ALG.es256 && crv === CRV.p256) {
    const y = base64urlAt(-3);
    return x !== undefined && y !== undefined ? { kty: 'EC', crv: 'P-256', alg: 'ES256', x, y } : undefined;
  }
  const isEd25519 = kty === KTY.okp && alg === ALG.eddsa && crv === CRV.ed25519;
  return isEd25519 && x !== undefined ? { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', x } : undefined;
}
