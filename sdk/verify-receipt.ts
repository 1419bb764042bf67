// Verifies a receipt without the network and without the service that issued it. A receipt authorises nothing, and does not
// say whether a later receipt amends it: `GET /v1/receipts/{jti}/status` does.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/** The saved answer of `GET /.well-known/jwks.json`. */
export interface KeySet {
  readonly keys: ReadonlyArray<{
    readonly kid: string;
    readonly kty: string;
    readonly crv: string;
    readonly x: string;
  }>;
}

export interface VerifyReceiptOptions {
  readonly keys: KeySet;
  /** The public URL of the service that must have issued it. */
  readonly issuer?: string;
  /** Id of the application that it must be about. */
  readonly audience?: string;
  /** Must have the digest in the receipt. */
  readonly input?: unknown;
  /** The output as the API returned it; links to files do not count. */
  readonly output?: unknown;
}

export interface ReceiptClaims {
  readonly iss: string;
  readonly aud: string;
  readonly sub: string;
  readonly jti: string;
  readonly iat: number;
  readonly berth: {
    readonly v: number;
    readonly operation: {
      readonly id: string;
      readonly revision: number;
      readonly digest: string;
      readonly effect: string;
    };
    readonly inputDigest: string;
    readonly outputDigest?: string;
    readonly status: string;
    readonly error?: { readonly code: string };
    readonly createdAt: string;
    readonly startedAt?: string;
    readonly endedAt: string;
    readonly attempts: number;
    readonly caller: { readonly kind: string; readonly id: string };
    readonly session?: { readonly id: string; readonly recorded: boolean };
    readonly cost: { readonly meters: Readonly<Record<string, number>> };
  };
}

/** The message says what is wrong. */
export class ReceiptInvalid extends Error {
  override readonly name = 'ReceiptInvalid';
}

const TYPE = 'berth-receipt+jwt';
/** EdDSA, and its newer name (RFC 9864). */
const ALGORITHMS: readonly unknown[] = ['EdDSA', 'Ed25519'];
/** Headers by which a receipt could choose the key or the rules of its own verification. */
const REFUSED_HEADERS = ['jwk', 'jku', 'x5c', 'x5u', 'crit'];
const RECEIPT_CHARACTERS_MAX = 100_000;

/** Returns what the receipt says. @throws ReceiptInvalid */
export function verifyReceipt(receipt: string, options: VerifyReceiptOptions): ReceiptClaims {
  const claims = signedClaims(receipt.trim(), options.keys);
  const { issuer, audience, input, output } = options;
  if (issuer !== undefined && claims.iss !== issuer)
    throw new ReceiptInvalid(`it was issued by ${claims.iss}, not by ${issuer}`);
  if (audience !== undefined && claims.aud !== audience)
    throw new ReceiptInvalid(`it is about the application ${claims.aud}, not ${audience}`);
  const { inputDigest, outputDigest, createdAt, startedAt = createdAt, endedAt } = claims.berth;
  if (!(createdAt <= startedAt && startedAt <= endedAt)) throw new ReceiptInvalid('its times are not in order');
  if (input !== undefined && digestOf(input) !== inputDigest)
    throw new ReceiptInvalid('the input is not the one of the receipt');
  if (output !== undefined && digestOf(withoutLinks(output)) !== outputDigest)
    throw new ReceiptInvalid('the output is not the one of the receipt');
  return claims;
}

function signedClaims(receipt: string, { keys }: KeySet): ReceiptClaims {
  if (receipt.length > RECEIPT_CHARACTERS_MAX) throw new ReceiptInvalid('it is too long');
  const [head = '', payload = '', signature = '', ...more] = receipt.split('.');
  if (signature === '' || more.length > 0) throw new ReceiptInvalid('it is not a compact JWS');
  const header = objectIn(head, 'header');
  const refused = REFUSED_HEADERS.find(name => name in header);
  if (refused !== undefined) throw new ReceiptInvalid(`its header has ${refused}, which is not accepted`);
  if (!ALGORITHMS.includes(header.alg))
    throw new ReceiptInvalid(`its algorithm is ${String(header.alg).slice(0, 20)}; expected EdDSA`);
  if (header.typ !== TYPE) throw new ReceiptInvalid(`its type is not ${TYPE}`);
  const key = keys.find(({ kid }) => kid === header.kid);
  if (!key) throw new ReceiptInvalid('it is signed with a key that the key set does not have');
  const { kty, crv, x } = key;
  if (digest64(`{"crv":"${crv}","kty":"${kty}","x":"${x}"}`) !== key.kid)
    throw new ReceiptInvalid(`the key set is damaged: ${key.kid} is not the thumbprint of its key`);
  const publicKey = createPublicKey({ key: { kty, crv, x }, format: 'jwk' });
  if (!isSigned(`${head}.${payload}`, publicKey, signature)) throw new ReceiptInvalid('its signature is not valid');
  return claimsIn(objectIn(payload, 'payload'));
}

function isSigned(text: string, key: ReturnType<typeof createPublicKey>, signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  // A signature has one spelling, so that no character of a receipt can change unnoticed.
  return bytes.toString('base64url') === signature && verify(null, Buffer.from(text), key, bytes);
}

type JsonMap = Readonly<Record<string, unknown>>;

function objectIn(part: string, what: string): JsonMap {
  try {
    const bytes = Buffer.from(part, 'base64url');
    const value: unknown = JSON.parse(bytes.toString());
    if (bytes.toString('base64url') === part && isMap(value)) return value;
  } catch {
    // reported below
  }
  throw new ReceiptInvalid(`its ${what} cannot be read`);
}

const isMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function claimsIn(payload: JsonMap): ReceiptClaims {
  const { iss, aud, sub, jti, iat, berth } = payload;
  const texts = [iss, aud, sub, jti];
  const isReceipt =
    texts.every(text => typeof text === 'string') && typeof iat === 'number' && isMap(berth) && berth.v === 1;
  if (
    !isReceipt ||
    !isMap(berth.operation) ||
    typeof berth.inputDigest !== 'string' ||
    typeof berth.endedAt !== 'string'
  )
    throw new ReceiptInvalid('it is not a receipt of version 1');
  // Signed by a key of the set, so the service wrote the other members.
  return payload as unknown as ReceiptClaims;
}

const digestOf = (value: unknown): string =>
  `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;

const digest64 = (text: string): string => createHash('sha256').update(text).digest('base64url');

function withoutLinks(output: unknown): unknown {
  if (!isMap(output) || !isMap(output.artifact)) return output;
  const { downloadUrl: _, downloadUrlExpiresAt: __, ...artifact } = output.artifact;
  return { ...output, artifact };
}
