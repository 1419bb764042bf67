// Fetches and caches the public keys of providers. They are cached for ten minutes. If an ID token names an unknown
// key, they are fetched again, but at most once every thirty seconds.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../kit/clock.ts';
import type { JsonObject } from '../../kit/json.ts';
import { fetchJson, type SendRequest } from './fetch-json.ts';
import { OpenIdError } from './trouble.ts';

const CACHE_MAX_AGE_MS = 600_000;
const REFETCH_AGE_MS_MAX = 30_000;
const KEY_SETS_MAX = 1_000;
const KEYS_PER_SET_MAX = 100;

interface KeySet {
  readonly get: JWTVerifyGetKey;
  readonly readAtMs: number;
}

export class KeySets {
  readonly #send: SendRequest;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #sets = new Map<string, KeySet>();

  constructor(send: SendRequest, clock: Pick<Clock, 'monotonicMs'>) {
    this.#send = send;
    this.#clock = clock;
  }

  /** Returns a function that finds the key that an ID token names, in the key set at this address. */
  keyFinderFor(jwksUri: string): JWTVerifyGetKey {
    return async (header, token) => {
      const cachedSet = await this.#keySetAt(jwksUri, CACHE_MAX_AGE_MS);
      try {
        return await cachedSet.get(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        const refetchedSet = await this.#keySetAt(jwksUri, REFETCH_AGE_MS_MAX);
        return refetchedSet.get(header, token);
      }
    };
  }

  async #keySetAt(jwksUri: string, ageMsMax: number): Promise<KeySet> {
    const existingSet = this.#sets.get(jwksUri);
    const nowMs = this.#clock.monotonicMs();
    if (existingSet && nowMs - existingSet.readAtMs < ageMsMax) return existingSet;
    const { status, json } = await fetchJson(this.#send, 'The key set of the provider', {
      method: 'GET',
      url: jwksUri,
    });
    if (status !== 200)
      throw new OpenIdError(`The request for the key set of the provider returned the status ${status}.`);
    const set = { get: createLocalJWKSet(keySetIn(json)), readAtMs: nowMs };
    this.#sets.delete(jwksUri);
    this.#sets.set(jwksUri, set);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > KEY_SETS_MAX && oldest !== undefined) this.#sets.delete(oldest);
    return set;
  }
}

function keySetIn(json: JsonObject): JSONWebKeySet {
  const { keys } = json;
  if (!Array.isArray(keys) || keys.length > KEYS_PER_SET_MAX)
    throw new OpenIdError(`keys in the key set of the provider must be an array of at most ${KEYS_PER_SET_MAX} keys.`);
  // The keys are not checked here. The library checks a key when an ID token names it.
  return { keys: keys.filter(key => typeof key === 'object' && key !== null && !Array.isArray(key)) };
}
