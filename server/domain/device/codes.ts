// The two codes of a device authorization. Only digests of them are stored.
import { createHash, createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import { USER_CODE_ALPHABET } from '../../../contract/device.ts';
import type { Secret } from '../../kit/secret.ts';

const USER_CODE_CHARACTERS = 8;
const GROUP_CHARACTERS = 4;

/** Creates a user code of 8 characters, which has about 38 bits of entropy. */
export const newUserCode = (): string =>
  Array.from({ length: USER_CODE_CHARACTERS }, () =>
    USER_CODE_ALPHABET.charAt(randomInt(USER_CODE_ALPHABET.length)),
  ).join('');

/** Formats a user code for display, for example as `KQTM-7HXD`. */
export const formatUserCode = (code: string): string =>
  `${code.slice(0, GROUP_CHARACTERS)}-${code.slice(GROUP_CHARACTERS)}`;

/** Normalizes a typed user code: removes spaces and dashes, and converts letters to upper case. */
export const normalizeUserCode = (text: string): string => text.toUpperCase().replace(/[\s\p{Pd}]/gu, '');

/**
 * Returns a keyed digest of a user code. All user codes can be tried within hours, so a plain digest would reveal the
 * code.
 */
export const userCodeDigest = (secret: Secret, code: string): Buffer =>
  createHmac('sha256', secret.reveal()).update(`device user code:${code}`).digest();

/** Whether the verifier matches the S256 challenge (RFC 7636). */
export function verifierMatches(challenge: string, verifier: string): boolean {
  const computedChallenge = Buffer.from(createHash('sha256').update(verifier).digest('base64url'));
  const expectedChallenge = Buffer.from(challenge);
  return computedChallenge.length === expectedChallenge.length && timingSafeEqual(computedChallenge, expectedChallenge);
}
