// The rules for a receipt, shared by all code that verifies one. The rules are generators and do no cryptography: they
// yield each digest or signature check as a `Question`, which the caller answers with the cryptography of the platform.
// Browsers use this file, so it imports nothing from Node.
import {
  hasRpIdDigest,
  type PasskeyJwk,
  type ReceiptAction,
  readPasskeySignature,
  timingProblem,
} from './approval-rules.ts';
import { fromBase64Url, toBase64Url } from './base64url.ts';
import { canonicalJson } from './canonical-json.ts';

/** The saved response of `GET /.well-known/jwks.json`. */
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
  /** The public URL of the service that must have issued the receipt. */
  readonly issuer?: string;
  /** The id of the application that the receipt must be for. */
  readonly audience?: string;
  /** The input. Its digest must be the one in the receipt. */
  readonly input?: unknown;
  /** The content of the Action, as the API returned it. Its digest must be the approved one. */
  readonly action?: unknown;
  /** The output, as the API returned it. Links to files are ignored. */
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
    /** Present for a call that a person has approved. */
    readonly action?: ReceiptAction;
    readonly session?: {
      readonly id: string;
      readonly recorded: boolean;
      /** Who had control of the session during the call. */
      readonly handoffs: readonly ReceiptHandoff[];
    };
    readonly upstream?: { readonly host?: string; readonly status?: number };
    readonly cost: {
      /** Micro-credits. `captured` is absent while the whole amount is still held. */
      readonly reserved?: number;
      readonly captured?: number;
      readonly meters: Readonly<Record<string, number>>;
    };
  };
}

/**
 * A period in which a person had control of the session. `masked`: hidden from the agent and from the recording. `to`
 * is absent if the period had not ended.
 */
export interface ReceiptHandoff {
  readonly id: string;
  readonly origin: string;
  readonly by: { readonly kind: string; readonly id?: string };
  readonly masked: boolean;
  readonly from: string;
  readonly to?: string;
}

/** The message states why the receipt is invalid. */
export class ReceiptInvalid extends Error {
  override readonly name = 'ReceiptInvalid';
}

/** A public Ed25519 key as a JWK. */
export interface PublicJwk {
  readonly kty: 'OKP';
  readonly crv: string;
  readonly x: string;
}

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * A computation that the rules request: the SHA-256 of some bytes, or the check of a signature over some bytes. The
 * signature is Ed25519 or that of a passkey.
 */
export type Question =
  | { readonly digest: Bytes }
  | { readonly signedBytes: Bytes; readonly signature: Bytes; readonly key: PublicJwk | PasskeyJwk };

/** The digest in bytes, or whether the signature is valid. */
export type QuestionAnswer = Uint8Array | boolean;

/** A part of the rules, which yields questions. Throws ReceiptInvalid. */
type Rules<Result> = Generator<Question, Result, QuestionAnswer>;

const RECEIPT_TYPE = 'berth-receipt+jwt';
/** EdDSA, and the newer name of the algorithm (RFC 9864). */
const ALGORITHMS: readonly unknown[] = ['EdDSA', 'Ed25519'];
/** Headers with which a receipt could choose the key or the rules for its own verification. */
const REFUSED_HEADERS = ['jwk', 'jku', 'x5c', 'x5u', 'crit'];
const RECEIPT_CHARACTERS_MAX = 100_000;

/**
 * Returns the claims of the receipt.
 * @throws ReceiptInvalid
 */
export function* receiptRules(receipt: string, options: VerifyReceiptOptions): Rules<ReceiptClaims> {
  const claims = yield* signedClaims(receipt.trim(), options.keys);
  const { issuer, audience, input, output } = options;
  if (issuer !== undefined && claims.iss !== issuer)
    throw new ReceiptInvalid(`the receipt was issued by ${claims.iss}, not by ${issuer}`);
  if (audience !== undefined && claims.aud !== audience)
    throw new ReceiptInvalid(`the receipt was issued for the application ${claims.aud}, not for ${audience}`);
  const { inputDigest, outputDigest, createdAt, startedAt = createdAt, endedAt } = claims.berth;
  if (!(createdAt <= startedAt && startedAt <= endedAt)) throw new ReceiptInvalid('the timestamps are out of order');
  const misorderedHandoff = claims.berth.session?.handoffs?.find(({ from, to = from }) => to < from || endedAt < from);
  if (misorderedHandoff)
    throw new ReceiptInvalid(`the timestamps of the hand-off ${misorderedHandoff.id} are out of order`);
  yield* approvalRules(claims, options);
  if (input !== undefined && (yield* digestOf(input)) !== inputDigest)
    throw new ReceiptInvalid('the input does not match the receipt');
  if (output !== undefined && !(yield* outputMatches(output, outputDigest)))
    throw new ReceiptInvalid('the output does not match the receipt');
  return claims;
}

function* approvalRules({ iss, berth }: ReceiptClaims, { action: content }: VerifyReceiptOptions): Rules<void> {
  const { action, createdAt } = berth;
  if (content !== undefined && (!action || (yield* digestOf(content)) !== action.digest))
    throw new ReceiptInvalid('the Action does not match the receipt');
  if (!action) return;
  const timingError = timingProblem(action, createdAt);
  if (timingError !== undefined) throw new ReceiptInvalid(timingError);
  const passkeySignature = readPasskeySignature(action, iss);
  if (typeof passkeySignature === 'string') throw new ReceiptInvalid(passkeySignature);
  if (!passkeySignature) return;
  const { authenticatorData, clientData, signature, key, rpId } = passkeySignature;
  if (!hasRpIdDigest(authenticatorData, yield* digest(rpId)))
    throw new ReceiptInvalid('the approval was signed for another host name');
  const clientDigest = yield { digest: clientData };
  if (typeof clientDigest === 'boolean') throw new TypeError('expected a digest, got a boolean');
  const signedBytes = new Uint8Array([...authenticatorData, ...clientDigest]);
  if ((yield { signedBytes, signature, key }) !== true)
    throw new ReceiptInvalid('the signature of the approval is not valid');
}

function* signedClaims(receipt: string, { keys }: KeySet): Rules<ReceiptClaims> {
  if (receipt.length > RECEIPT_CHARACTERS_MAX)
    throw new ReceiptInvalid(`the receipt is longer than ${RECEIPT_CHARACTERS_MAX} characters`);
  const [head = '', payload = '', signature = '', ...extraParts] = receipt.split('.');
  if (signature === '' || extraParts.length > 0) throw new ReceiptInvalid('the receipt is not a compact JWS');
  const header = objectIn(head, 'header');
  const refusedHeader = REFUSED_HEADERS.find(name => name in header);
  if (refusedHeader !== undefined)
    throw new ReceiptInvalid(`the header contains ${refusedHeader}, which is not allowed`);
  if (!ALGORITHMS.includes(header.alg))
    throw new ReceiptInvalid(`the algorithm is ${String(header.alg).slice(0, 20)}; expected EdDSA`);
  if (header.typ !== RECEIPT_TYPE) throw new ReceiptInvalid(`the type in the header is not ${RECEIPT_TYPE}`);
  const key = keys.find(({ kid }) => kid === header.kid);
  if (!key) throw new ReceiptInvalid('the receipt is signed with a key that is not in the key set');
  const { kty, crv, x } = key;
  if (toBase64Url(yield* digest(`{"crv":"${crv}","kty":"${kty}","x":"${x}"}`)) !== key.kid)
    throw new ReceiptInvalid(`the key set is damaged: ${key.kid} is not the thumbprint of its key`);
  if (kty !== 'OKP') throw new ReceiptInvalid('the key of the receipt is not an Ed25519 key');
  if (!(yield* isSigned(`${head}.${payload}`, { kty, crv, x }, signature)))
    throw new ReceiptInvalid('the receipt signature is not valid');
  return claimsIn(objectIn(payload, 'payload'));
}

function* isSigned(text: string, key: PublicJwk, signature: string): Rules<boolean> {
  // Only the canonical encoding of a signature is valid, so that any changed character of a receipt is detected.
  const bytes = fromBase64Url(signature);
  if (!bytes) return false;
  return (yield { signedBytes: new TextEncoder().encode(text), signature: bytes, key }) === true;
}

type JsonObject = Readonly<Record<string, unknown>>;

function objectIn(part: string, partName: string): JsonObject {
  try {
    const bytes = fromBase64Url(part);
    const value: unknown = bytes && JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    if (isJsonObject(value)) return value;
  } catch {
    // The error is thrown below.
  }
  throw new ReceiptInvalid(`the ${partName} of the receipt cannot be read`);
}

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function claimsIn(payload: JsonObject): ReceiptClaims {
  const { iss, aud, sub, jti, iat, berth } = payload;
  const stringClaims = [iss, aud, sub, jti];
  const isReceipt =
    stringClaims.every(text => typeof text === 'string') &&
    typeof iat === 'number' &&
    isJsonObject(berth) &&
    berth.v === 1;
  if (
    !isReceipt ||
    !isJsonObject(berth.operation) ||
    typeof berth.inputDigest !== 'string' ||
    typeof berth.endedAt !== 'string'
  )
    throw new ReceiptInvalid('the payload is not a receipt of version 1');
  // The members that are not checked above can be trusted too, because the payload is signed by a key of the key set.
  return payload as unknown as ReceiptClaims;
}

function* digest(text: string): Rules<Uint8Array> {
  const answer = yield { digest: new TextEncoder().encode(text) };
  if (typeof answer === 'boolean') throw new TypeError('expected a digest, got a boolean');
  return answer;
}

function* digestOf(value: unknown): Rules<string> {
  const bytes = yield* digest(canonicalJson(value));
  return `sha256:${Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * Compares the digests of the output without links and of the unchanged output, because members with the names of links
 * may be part of the signed output.
 */
function* outputMatches(output: unknown, expectedDigest: string | undefined): Rules<boolean> {
  return (yield* digestOf(withoutLinks(output))) === expectedDigest || (yield* digestOf(output)) === expectedDigest;
}

function withoutLinks(output: unknown): unknown {
  if (!isJsonObject(output)) return output;
  const { artifact, artifacts, downloads } = output;
  return {
    ...output,
    ...(isJsonObject(artifact) ? { artifact: withoutLink(artifact) } : {}),
    ...(Array.isArray(artifacts) ? { artifacts: artifacts.map(withoutLink) } : {}),
    ...(Array.isArray(downloads) ? { downloads: downloads.map(withoutLink) } : {}),
  };
}

function withoutLink(file: unknown): unknown {
  if (!isJsonObject(file)) return file;
  const { downloadUrl: _, downloadUrlExpiresAt: __, ...rest } = file;
  return rest;
}
