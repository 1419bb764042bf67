// An OpenID relying party (OpenID Connect Core): exchanges a code, and accepts an ID token only if its signature and
// all its claims are valid.
import { createHash } from 'node:crypto';
import { errors, type JWTPayload, jwtVerify } from 'jose';
import type { Clock } from '../../kit/clock.ts';
import { textAt } from '../../kit/json.ts';
import type { ProviderMetadata } from './discovery.ts';
import { fetchJson, type SendRequest } from './fetch-json.ts';
import { KeySets } from './key-sets.ts';
import { OpenIdError, type Outcome, outcomeOf } from './trouble.ts';

/** The clocks of the provider and of this machine may differ by this much. */
const TOLERANCE_SECONDS = 60;
const SUBJECT_CHARACTERS_MAX = 255;
const UNUSABLE_KEY = 'its key in the key set of the provider cannot be used';

export interface Client {
  readonly id: string;
  readonly secret?: string;
  readonly authMethod: 'client_secret_basic' | 'client_secret_post' | 'none';
}

export interface CodeGrant {
  readonly code: string;
  readonly verifier: string;
  readonly redirectUri: string;
  readonly nonce: string;
  /** The maximum age of the authentication, in seconds. */
  readonly maxAge?: number;
}

export interface IdentifiedSubject {
  readonly subject: string;
  readonly name?: string;
  readonly authTime: Date;
  readonly idToken: string;
}

export class RelyingParty {
  readonly #send: SendRequest;
  readonly #clock: Clock;
  readonly #keys: KeySets;

  constructor(send: SendRequest, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
    this.#keys = new KeySets(send, clock);
  }

  identify(provider: ProviderMetadata, client: Client, grant: CodeGrant): Promise<Outcome<IdentifiedSubject>> {
    return outcomeOf(async () => {
      const { idToken, accessToken } = await this.#exchange(provider, client, grant);
      const { payload, algorithm } = await this.#verify(provider, client, idToken);
      this.#checkClaims(payload, client, grant);
      checkAccessToken(payload, algorithm, accessToken);
      const { name, auth_time: authTime, sub: subject }: Readonly<Record<string, unknown>> = payload;
      if (typeof subject !== 'string' || subject === '' || subject.length > SUBJECT_CHARACTERS_MAX)
        throw invalidClaimError('sub');
      return {
        ...{ subject, idToken },
        ...(typeof name === 'string' ? { name } : {}),
        authTime: typeof authTime === 'number' ? new Date(authTime * 1000) : this.#clock.now(),
      };
    });
  }

  async #exchange(
    { tokenEndpoint }: ProviderMetadata,
    { id, secret, authMethod }: Client,
    { code, verifier, redirectUri }: CodeGrant,
  ): Promise<{ readonly idToken: string; readonly accessToken: string | undefined }> {
    const form = new URLSearchParams({
      ...{ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier, client_id: id },
      ...(authMethod === 'client_secret_post' && secret !== undefined ? { client_secret: secret } : {}),
    });
    const isBasic = authMethod === 'client_secret_basic' && secret !== undefined;
    const { status, json } = await fetchJson(this.#send, 'The response of the token endpoint', {
      method: 'POST',
      url: tokenEndpoint,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(isBasic ? { authorization: basicAuthorization(id, secret) } : {}),
      },
      body: Buffer.from(form.toString()),
    });
    if (status !== 200) throw new OpenIdError(`The request to the token endpoint returned the status ${status}.`);
    const idToken = textAt(json, 'id_token');
    if (idToken === undefined) throw new OpenIdError('The provider returned no ID token.');
    return { idToken, accessToken: textAt(json, 'access_token') };
  }

  /** Verifies the signature, issuer, audience and times of an ID token. */
  async #verify(
    { issuer, jwksUri, algorithms }: ProviderMetadata,
    { id }: Client,
    idToken: string,
  ): Promise<{ readonly payload: JWTPayload; readonly algorithm: string }> {
    try {
      const { payload, protectedHeader } = await jwtVerify(idToken, this.#keys.keyFinderFor(jwksUri), {
        ...{ issuer, audience: id, algorithms: [...algorithms], currentDate: this.#clock.now() },
        ...{ clockTolerance: TOLERANCE_SECONDS, requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat', 'nonce'] },
      });
      return { payload, algorithm: protectedHeader.alg };
    } catch (error) {
      if (error instanceof errors.JOSEError) throw new OpenIdError(`The ID token is not valid: ${refusalOf(error)}.`);
      // The library throws these if it cannot import the key.
      if (error instanceof TypeError || error instanceof DOMException)
        throw new OpenIdError(`The ID token is not valid: ${UNUSABLE_KEY}.`);
      throw error;
    }
  }

  #checkClaims(payload: JWTPayload, { id }: Client, { nonce, maxAge }: CodeGrant): void {
    const now = this.#clock.now().getTime() / 1000;
    if (payload.nonce !== nonce) throw invalidClaimError('nonce');
    const hasOtherAudiences = Array.isArray(payload.aud) && payload.aud.length > 1;
    if (payload.azp === undefined ? hasOtherAudiences : payload.azp !== id) throw invalidClaimError('azp');
    if (payload.iat === undefined || Math.abs(now - payload.iat) > TOLERANCE_SECONDS) throw invalidClaimError('iat');
    const { auth_time: authTime } = payload;
    if (authTime !== undefined && !isPast(authTime, now)) throw invalidClaimError('auth_time');
    if (maxAge === undefined) return;
    if (typeof authTime !== 'number' || now - authTime > maxAge + TOLERANCE_SECONDS)
      throw invalidClaimError('auth_time');
  }
}

const isPast = (time: unknown, now: number): boolean =>
  typeof time === 'number' && Number.isSafeInteger(time) && time >= 0 && time <= now + TOLERANCE_SECONDS;

const invalidClaimError = (claim: string): OpenIdError =>
  new OpenIdError(`The ID token is not valid: the ${claim} check failed.`);

/** Returns which rule an ID token breaks. The messages of the library may quote the token. */
function refusalOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return `the ${error.claim} check failed`;
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong';
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its signature algorithm is not allowed for this provider';
  if (error instanceof errors.JWKSNoMatchingKey) return 'it names no key in the key set of the provider';
  if (error instanceof errors.JWKSMultipleMatchingKeys) return 'several keys in the key set of the provider match it';
  if (error instanceof errors.JOSENotSupported) return 'it requires an extension that is not supported';
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return 'it is not a signed JSON Web Token';
  return UNUSABLE_KEY;
}

/** Checks `at_hash` (OpenID Connect Core, 3.1.3.8). The hash function is that of the signature algorithm. */
function checkAccessToken({ at_hash: hash }: JWTPayload, algorithm: string, accessToken: string | undefined): void {
  if (hash === undefined) return;
  const bits = algorithm === 'EdDSA' ? '512' : algorithm.slice(-3);
  const tokenDigest = createHash(`sha${bits}`)
    .update(accessToken ?? '')
    .digest();
  if (hash !== tokenDigest.subarray(0, tokenDigest.length / 2).toString('base64url'))
    throw invalidClaimError('at_hash');
}

const basicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`;

/** Encodes a client id or secret (RFC 6749, 2.3.1). */
const formEncode = (text: string): string => new URLSearchParams({ a: text }).toString().slice(2);
