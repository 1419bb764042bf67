// HTTP handlers for the public signing keys.
import type { SigningKeys } from '../../domain/signing/signing-keys.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type SigningKeyMethods = Pick<SigningKeys, 'jwks'>;

/** Verifiers may cache the keys for this long. */
const CACHED_SECONDS = 300;

export const signingKeyHandlers = (keys: SigningKeyMethods) => ({
  readSigningKeys: async (_: HandlerInput<'readSigningKeys'>): Promise<HttpResponse> =>
    jsonResponse(await keys.jwks(), {
      'cache-control': `public, max-age=${CACHED_SECONDS}`,
      'access-control-allow-origin': '*',
    }),
});
