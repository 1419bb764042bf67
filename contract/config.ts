// How the service describes itself to clients: where to sign in, and how to authorize a device.
import { type Static, Type } from 'typebox';
import { SIGN_IN_METHODS } from './sign-in.ts';

export const ConfigQuery = Type.Object({
  application: Type.Optional(
    Type.String({
      maxLength: 128,
      description: 'Id of an application. The response then also describes how its consumers sign in.',
    }),
  ),
});

export const IfNoneMatchHeader = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({
      maxLength: 2000,
      description: '`ETag` of the version that you already have. If it is current, the status is 304.',
    }),
  ),
});

export const REGISTRATION_MODES = ['open', 'invite', 'closed'] as const;

export const ServiceConfig = Type.Object(
  {
    issuer: Type.String({ description: 'OAuth issuer of the tokens.' }),
    baseUrl: Type.String({ description: 'Origin of the API.' }),
    docsUrl: Type.String({ description: 'Address of the documentation.' }),
    version: Type.String({ description: 'Version of the service.' }),
    signIn: Type.Object({
      url: Type.String({ description: 'Page on which people sign in.' }),
      methods: Type.Array(Type.Enum([...SIGN_IN_METHODS]), {
        description: 'The methods with which a sign-in can begin.',
      }),
    }),
    registration: Type.Enum([...REGISTRATION_MODES], {
      description: 'Who can register: anyone, only people who were invited, or nobody.',
    }),
    minPasswordLength: Type.Integer({ description: 'Minimum number of characters in a password.' }),
    device: Type.Object(
      {
        authorizationUrl: Type.String({ description: 'Address at which a program starts an authorization.' }),
        tokenUrl: Type.String({ description: 'Address at which the program collects its token.' }),
        verificationUri: Type.String({ description: 'The page on which the person decides.' }),
        interval: Type.Integer({ description: 'Minimum number of seconds between two requests for the token.' }),
        expiresIn: Type.Integer({ description: 'Seconds until the codes expire.' }),
      },
      { description: 'Device authorization (RFC 8628).' },
    ),
    regions: Type.Array(Type.String(), { description: 'Regions in which browsers can run.' }),
    consumer: Type.Optional(
      Type.Object(
        {
          name: Type.String({ description: 'Name of the application.' }),
          colour: Type.Optional(Type.String({ description: 'Colour of the sign-in pages of the application.' })),
          providers: Type.Array(
            Type.Object({
              id: Type.String({ description: 'Id of the provider, used in the paths of consumer commands.' }),
              title: Type.String({ description: 'Display name.' }),
              kind: Type.Enum(['hosted', 'oidc']),
            }),
          ),
        },
        {
          description:
            'With `application`, how the consumers of that application sign in. Absent if they cannot sign in.',
        },
      ),
    ),
  },
  { description: 'What clients need to know about the service.' },
);
export type ServiceConfig = Static<typeof ServiceConfig>;

export const AuthorizationServer = Type.Object(
  {
    issuer: Type.String(),
    device_authorization_endpoint: Type.String(),
    token_endpoint: Type.String(),
    revocation_endpoint: Type.String(),
    jwks_uri: Type.String({
      description: 'Address of the public keys that verify signatures of the service.',
    }),
    grant_types_supported: Type.Array(Type.String()),
    response_types_supported: Type.Array(Type.String(), {
      description: 'Empty, because there is no authorization endpoint.',
    }),
    token_endpoint_auth_methods_supported: Type.Array(Type.String()),
    revocation_endpoint_auth_methods_supported: Type.Array(Type.String()),
    code_challenge_methods_supported: Type.Array(Type.String()),
    scopes_supported: Type.Array(Type.String()),
    service_documentation: Type.String(),
  },
  { description: 'Authorization server metadata (RFC 8414).' },
);
export type AuthorizationServer = Static<typeof AuthorizationServer>;
