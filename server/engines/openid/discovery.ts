// Reads the discovery document of an OpenID provider. Only the values that Berth uses are checked and kept.
import { type JsonObject, textAt } from '../../kit/json.ts';
import { isLoopback } from '../../kit/loopback.ts';
import { fetchJson, type SendRequest } from './fetch-json.ts';
import { OpenIdError, type Outcome, outcomeOf } from './trouble.ts';

/** Signature algorithms that need no shared secret. `none` is not one of them. */
const SUPPORTED_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
const URL_CHARACTERS_MAX = 2048;

/** Returns why a request to this address would be refused. Undefined if the address may be called. */
export type AddressCheck = (url: string) => Promise<{ readonly message: string } | undefined>;

export interface ProviderMetadata {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly jwksUri: string;
  readonly endSessionEndpoint?: string;
  /** Accepted algorithms for ID tokens. Any other algorithm is refused, even if a later discovery document lists it. */
  readonly algorithms: readonly string[];
  /** Whether responses of the authorization endpoint contain `iss` (RFC 9207). */
  readonly answersWithIssuer: boolean;
}

export const discover = (send: SendRequest, check: AddressCheck, issuer: string): Promise<Outcome<ProviderMetadata>> =>
  outcomeOf(async () => {
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const { status, json } = await fetchJson(send, 'The discovery document', { method: 'GET', url });
    if (status !== 200) throw new OpenIdError(`The request for the discovery document returned the status ${status}.`);
    if (textAt(json, 'issuer') !== issuer)
      throw new OpenIdError('The issuer in the discovery document differs from the configured issuer.');
    const endSessionEndpoint =
      'end_session_endpoint' in json ? await endpoint(json, 'end_session_endpoint', check) : undefined;
    return {
      issuer,
      authorizationEndpoint: await endpoint(json, 'authorization_endpoint', check),
      tokenEndpoint: await endpoint(json, 'token_endpoint', check),
      jwksUri: await endpoint(json, 'jwks_uri', check),
      ...(endSessionEndpoint === undefined ? {} : { endSessionEndpoint }),
      algorithms: algorithmsIn(json),
      answersWithIssuer: json.authorization_response_iss_parameter_supported === true,
    };
  });

/** Reads a URL and checks it against the rules for outgoing requests, even if only browsers open the URL. */
async function endpoint(json: JsonObject, name: string, check: AddressCheck): Promise<string> {
  const text = textAt(json, name) ?? '';
  const url = text.length <= URL_CHARACTERS_MAX ? URL.parse(text) : null;
  const isSafe = url && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)));
  if (!isSafe || url.username || url.password || text.includes('#'))
    throw new OpenIdError(
      `${name} in the discovery document must be an https URL of at most ${URL_CHARACTERS_MAX} characters, without a user name, password or fragment.`,
    );
  const refusal = await check(text);
  if (refusal) throw new OpenIdError(`${name} in the discovery document cannot be used. ${refusal.message}`);
  return text;
}

function algorithmsIn(json: JsonObject): readonly string[] {
  const providerAlgorithms = json.id_token_signing_alg_values_supported;
  const commonAlgorithms = SUPPORTED_ALGORITHMS.filter(
    one => Array.isArray(providerAlgorithms) && providerAlgorithms.includes(one),
  );
  if (commonAlgorithms.length > 0) return commonAlgorithms;
  throw new OpenIdError(
    `id_token_signing_alg_values_supported in the discovery document must contain one of ${SUPPORTED_ALGORITHMS.join(', ')}.`,
  );
}

/** Reads metadata that Berth has stored. */
export function metadataIn(json: JsonObject): ProviderMetadata {
  const text = (name: string): string => {
    const value = textAt(json, name);
    if (value === undefined) throw new Error(`stored metadata of a provider lacks ${name}`);
    return value;
  };
  const endSessionEndpoint = textAt(json, 'endSessionEndpoint');
  const { algorithms } = json;
  return {
    issuer: text('issuer'),
    authorizationEndpoint: text('authorizationEndpoint'),
    tokenEndpoint: text('tokenEndpoint'),
    jwksUri: text('jwksUri'),
    ...(endSessionEndpoint === undefined ? {} : { endSessionEndpoint }),
    algorithms: SUPPORTED_ALGORITHMS.filter(one => Array.isArray(algorithms) && algorithms.includes(one)),
    answersWithIssuer: json.answersWithIssuer === true,
  };
}
