// HTTP handlers for the public signing keys.
import type { SigningKeys } from '../../domain/signing/signing-keys.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type SigningKeyVerbs = Pick<SigningKeys, 'jwks'>;

/** Verifiers may cache the keys for this long. */
const CACHED_SECONDS = 300;

export const signingKeyHandlers = (keys: SigningKeyVerbs) => ({
  readSigningKeys: async (_: In<'readSigningKeys'>): Promise<Answer> =>
    answer(await keys.jwks(), {
      'cache-control': `public, max-age=${CACHED_SECONDS}`,
      'access-control-allow-origin': '*',
    }),
});
