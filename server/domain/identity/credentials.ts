// The format of credentials: creates, recognizes and hashes them. Whether a credential is valid is checked in
// callers.ts.
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Secret } from '../../kit/secret.ts';

export type CredentialKind = 'agent_key' | 'personal_token' | 'developer_token' | 'human_session' | 'consumer_session';
/** The kinds of secrets that have the same format but do not authenticate a caller. */
export type SecretKind =
  | 'invitation'
  | 'device_code'
  | 'consumer_refresh'
  | 'consumer_code'
  | 'handoff_claim'
  | 'handoff_lease'
  | 'handoff_browser';

const PREFIXES = {
  agent_key: 'bak',
  personal_token: 'bpt',
  developer_token: 'bdt',
  human_session: 'bhs',
  invitation: 'biv',
  device_code: 'bdc',
  consumer_session: 'bcs',
  consumer_refresh: 'bcr',
  consumer_code: 'bxc',
  handoff_claim: 'bhc',
  handoff_lease: 'bhl',
  handoff_browser: 'bhb',
} as const satisfies Record<CredentialKind | SecretKind, string>;
/** Prefixes of the credentials that authenticate a caller. */
const KINDS_BY_PREFIX: ReadonlyMap<string, CredentialKind> = new Map([
  ['bak', 'agent_key'],
  ['bpt', 'personal_token'],
  ['bdt', 'developer_token'],
  ['bhs', 'human_session'],
  ['bcs', 'consumer_session'],
]);
const RANDOM_BYTES = 32;
const CHECKSUM_CHARACTERS = 6;
const PREFIX_CHARACTERS = 8;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Prefix, 43 base64url characters (256 bits), and a checksum of 6 characters. */
const CREDENTIAL_PATTERN = /^(b[a-z]{2})_([A-Za-z0-9_-]{43})([0-9A-Za-z]{6})$/;

export interface Credential {
  readonly kind: CredentialKind;
  /** SHA-256 of the whole text, as stored in the database. */
  readonly hash: Buffer;
}

export interface MintedCredential {
  readonly hash: Buffer;
  readonly text: Secret;
  /** The first characters of the credential, which are shown in lists. */
  readonly prefix: string;
}

export function mint(kind: CredentialKind | SecretKind): MintedCredential {
  const body = `${PREFIXES[kind]}_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
  const text = body + checksum(body);
  return { hash: hashOf(text), text: new Secret(text), prefix: text.slice(0, PREFIX_CHARACTERS) };
}

/**
 * Parses a credential. Returns undefined if the format or the checksum is wrong. The checksum detects typing errors
 * without a query.
 */
export function recognize(text: string): Credential | undefined {
  const kind = KINDS_BY_PREFIX.get(prefixOf(text) ?? '');
  return kind && { kind, hash: hashOf(text) };
}

/**
 * Returns the hash of a secret that does not authenticate a caller. Undefined if the text has another kind or format,
 * or a wrong checksum.
 */
export const recognizeSecret = (kind: SecretKind, text: string): Buffer | undefined =>
  prefixOf(text) === PREFIXES[kind] ? hashOf(text) : undefined;

function prefixOf(text: string): string | undefined {
  const [, prefix, random, checksumText] = CREDENTIAL_PATTERN.exec(text) ?? [];
  return checksum(`${prefix}_${random}`) === checksumText ? prefix : undefined;
}

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** CRC-32 in base 62, as in the tokens of other services, so that secret scanners can verify a match. */
function checksum(body: string): string {
  let remainder = crc32(body);
  let text = '';
  while (text.length < CHECKSUM_CHARACTERS) {
    text = DIGITS.charAt(remainder % DIGITS.length) + text;
    remainder = Math.floor(remainder / DIGITS.length);
  }
  return text;
}
