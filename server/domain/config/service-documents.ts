// The documents in which the service describes itself to clients. Both documents are made from the same values.
import { isIP } from 'node:net';
import type { AuthorizationServer, ServiceConfig } from '../../../contract/config.ts';
import { DEVICE_CODE_LIFETIME_SECONDS, DEVICE_GRANT_TYPE, POLL_INTERVAL_SECONDS } from '../../../contract/device.ts';
import { operation } from '../../../contract/operations.ts';
import { TOKEN_SCOPES } from '../../../contract/tokens.ts';

/** How people sign in. */
export interface SignInOffer extends Pick<ServiceConfig, 'registration' | 'minPasswordLength'> {
  readonly methods: Readonly<ServiceConfig['signIn']['methods']>;
}

export interface ServiceFacts {
  /** The origin of the service. */
  readonly publicUrl: string;
  readonly version: string;
  readonly regions: readonly string[];
  readonly signIn: SignInOffer;
}

export interface ServiceDocuments {
  config(): ServiceConfig;
  authorizationServer(): AuthorizationServer;
}

/** Programs have no client secret, because the device code authorizes the token request. */
const NO_CLIENT_SECRET = ['none'];

export function serviceDocuments({ publicUrl, version, regions, signIn }: ServiceFacts): ServiceDocuments {
  const urlOf = (path: string): string => `${publicUrl}${path}`;
  const docsUrl = urlOf('/docs');
  // A passkey is bound to a host name, and browsers do not offer passkeys for an IP address.
  const isIpAddress = isIP(new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')) !== 0;
  const offeredMethods = signIn.methods.filter(method => method !== 'passkey' || !isIpAddress);
  const startUrl = urlOf(operation('startDeviceAuthorization').path);
  const tokenUrl = urlOf(operation('collectDeviceToken').path);
  return {
    config: () => ({
      ...{ issuer: publicUrl, baseUrl: publicUrl, docsUrl, version },
      signIn: { url: urlOf('/signin'), methods: offeredMethods },
      registration: signIn.registration,
      minPasswordLength: signIn.minPasswordLength,
      device: {
        authorizationUrl: startUrl,
        tokenUrl,
        verificationUri: urlOf('/device'),
        interval: POLL_INTERVAL_SECONDS,
        expiresIn: DEVICE_CODE_LIFETIME_SECONDS,
      },
      regions: [...regions],
    }),
    authorizationServer: () => ({
      issuer: publicUrl,
      device_authorization_endpoint: startUrl,
      token_endpoint: tokenUrl,
      revocation_endpoint: urlOf(operation('revokeSentToken').path),
      jwks_uri: urlOf(operation('readSigningKeys').path),
      grant_types_supported: [DEVICE_GRANT_TYPE],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: NO_CLIENT_SECRET,
      revocation_endpoint_auth_methods_supported: NO_CLIENT_SECRET,
      code_challenge_methods_supported: ['S256'],
      scopes_supported: [...TOKEN_SCOPES],
      service_documentation: docsUrl,
    }),
  };
}
