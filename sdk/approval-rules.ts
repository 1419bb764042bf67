// The rules for the approval in a receipt: the signature of a passkey over the digest of the Action (WebAuthn level 3),
// and the order of the times. Like receipt-rules.ts, this file does no cryptography and imports nothing from Node.
import { fromBase64Url, toBase64Url } from './base64url.ts';

/** The public key of a passkey. */
export type PasskeyJwk =
  | { readonly kty: 'EC'; readonly crv: string; readonly x: string; readonly y: string }
  | { readonly kty: 'OKP'; readonly crv: string; readonly x: string }
  | { readonly kty: 'RSA'; readonly n: string; readonly e: string }
  | { readonly kty: 'AKP'; readonly alg: string; readonly pub: string };

export interface ReceiptAction {
  readonly jobId: string;
  /** The digest of the content of the Action. The agent and the person have seen this content. */
  readonly digest: string;
  readonly preparedAt: string;
  readonly approval: {
    readonly by: { readonly kind: string; readonly id: string };
    readonly method: string;
    readonly acr: string;
    readonly authTime: string;
    readonly at: string;
    /** All members are in base64url, as the browser created them. */
    readonly proof?: {
      readonly credentialId: string;
      readonly clientDataJSON: string;
      readonly authenticatorData: string;
      readonly signature: string;
    };
    readonly publicKey?: PasskeyJwk;
    readonly rpId?: string;
  };
  readonly endUser?: { readonly providerId: string; readonly subjectDigest: string };
}

type Bytes = Uint8Array<ArrayBuffer>;

/** The signature of a passkey, and the data that it signs. */
export interface PasskeySignature {
  readonly clientData: Bytes;
  readonly authenticatorData: Bytes;
  readonly signature: Bytes;
  readonly key: PasskeyJwk;
  readonly rpId: string;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const RP_ID_DIGEST_BYTES = 32;
const AUTHENTICATOR_DATA_BYTES_MIN = 37;
const LOOPBACK_PATTERN = /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/;
const KEY_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
  RSA: ['n', 'e'],
  AKP: ['alg', 'pub'],
};

/** Returns the problem with the times of an approval. Undefined if the times are in order. */
export function timingProblem({ preparedAt, approval: { authTime, at } }: ReceiptAction, acceptedAt: string) {
  const isInOrder = preparedAt <= at && at <= acceptedAt && authTime <= at;
  return isInOrder ? undefined : 'the timestamps of the approval are out of order';
}

/**
 * Returns the signature of the passkey, if the signed data is for this digest and this issuer and states that the user
 * was verified. Otherwise returns the problem. Undefined if the approval has no signature.
 */
export function readPasskeySignature(
  { digest, approval }: ReceiptAction,
  issuer: string,
): PasskeySignature | string | undefined {
  const { method, proof, publicKey: key, rpId } = approval;
  if (method !== 'passkey')
    return proof ? 'the approval has a passkey signature, but its method is not passkey' : undefined;
  if (!proof || !key || rpId === undefined || !isKey(key)) return 'the signature of the approval is missing';
  const [clientData, authenticatorData, signature] = [
    ...[proof.clientDataJSON, proof.authenticatorData, proof.signature].map(text => fromBase64Url(String(text))),
  ];
  if (!clientData || !authenticatorData || !signature) return 'the signature of the approval cannot be read';
  if (!isHostOf(issuer, rpId)) return `the approval was signed for ${rpId}, which is not the host name of ${issuer}`;
  const problem = clientDataProblem(clientData, digest, rpId);
  if (problem !== undefined) return problem;
  if (authenticatorData.length < AUTHENTICATOR_DATA_BYTES_MIN) return 'the signature of the approval cannot be read';
  const flags = authenticatorData[RP_ID_DIGEST_BYTES] ?? 0;
  if ((flags & USER_PRESENT) === 0 || (flags & USER_VERIFIED) === 0)
    return 'the passkey of the approval did not verify the user';
  return { clientData, authenticatorData, signature, key, rpId };
}

/**
 * Whether the authenticator data begins with `digest`, which must be the SHA-256 of the RP ID, the host name for which
 * the passkey has signed.
 */
export const hasRpIdDigest = (authenticatorData: Uint8Array, digest: Uint8Array): boolean =>
  toBase64Url(authenticatorData.slice(0, RP_ID_DIGEST_BYTES)) === toBase64Url(digest);

function clientDataProblem(clientData: Bytes, digest: string, rpId: string): string | undefined {
  const parsedClientData = objectIn(clientData);
  const bytes = digest.slice('sha256:'.length).match(/[0-9a-f]{2}/g) ?? [];
  const challenge = toBase64Url(Uint8Array.from(bytes, byte => Number.parseInt(byte, 16)));
  if (parsedClientData.type !== 'webauthn.get' || parsedClientData.challenge !== challenge)
    return 'the approval was signed for another Action';
  const origin = String(parsedClientData.origin);
  const host = URL.canParse(origin) ? new URL(origin).hostname : '';
  return host === rpId || host.endsWith(`.${rpId}`)
    ? undefined
    : 'the approval was signed on a page with another host name';
}

/** If the issuer is a loopback address, the RP ID may be `localhost`, because a passkey belongs to a host name. */
function isHostOf(issuer: string, rpId: string): boolean {
  const host = URL.canParse(issuer) ? new URL(issuer).hostname : '';
  return host === rpId || (LOOPBACK_PATTERN.test(host) && rpId === 'localhost');
}

function objectIn(bytes: Bytes): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}

function isKey(key: object): boolean {
  const members = new Map<string, unknown>(Object.entries(key));
  const requiredMembers = KEY_MEMBERS[String(members.get('kty'))];
  return requiredMembers?.every(name => typeof members.get(name) === 'string') ?? false;
}

/**
 * Converts an ECDSA signature from DER, which passkeys use, to the form that WebCrypto accepts: two numbers of 32
 * bytes.
 */
export function rawEcdsaSignature(der: Uint8Array): Bytes | undefined {
  const raw = new Uint8Array(64);
  let offset = 2;
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  for (const end of [32, 64]) {
    const length = der[offset + 1] ?? 0;
    const number = der.slice(offset + 2, offset + 2 + length);
    if (der[offset] !== 0x02 || number.length !== length || length === 0) return undefined;
    const digits = number[0] === 0 ? number.slice(1) : number;
    if (digits.length > 32) return undefined;
    raw.set(digits, end - digits.length);
    offset += 2 + length;
  }
  return offset === der.length ? raw : undefined;
}
