// Consumers, which are the end users of an application: how they sign in, their consumer sessions and their profiles.
import { type Static, Type } from 'typebox';
import { ACTION_STATUSES, DecideAction, EndUser } from './actions.ts';
import { ApplicationParams } from './applications.ts';
import { AnyObject, PageQuery, Time, Uuid } from './common.ts';
import {
  ACRS,
  Code,
  EMAIL_CHARACTERS_MAX,
  Email,
  NewPassword,
  PASSWORD_CHARACTERS_MAX,
  PasskeyResponse,
  SIGN_IN_METHODS,
} from './sign-in.ts';

/**
 * The built-in provider of every application: consumers sign in on a page of this service, by password, passkey or a
 * code by e-mail.
 */
export const HOSTED_PROVIDER = 'hosted';
export const ORIGINS_MAX = 20;
export const REDIRECT_URIS_MAX = 20;
export const CONSUMER_CODE_LIFETIME_SECONDS = 60;
export const CONSUMER_SIGN_IN_LIFETIME_SECONDS = 600;
export const CONSUMER_SESSION_LIFETIME_SECONDS = 3600;
export const CONSUMER_REFRESH_LIFETIME_SECONDS = 30 * 86_400;
export const CONSUMER_METADATA_BYTES_MAX = 4096;
export const CONSUMER_PASSKEYS_MAX = 10;

const URL_CHARACTERS_MAX = 2048;

// ---- how an application lets its consumers sign in -----------------------------------------------------------------

const HostedSettings = Type.Object(
  {
    methods: Type.Array(Type.Enum([...SIGN_IN_METHODS]), {
      maxItems: SIGN_IN_METHODS.length,
      description: 'The methods with which a sign-in can begin. If empty, the provider `hosted` is off.',
    }),
    registration: Type.Enum(['open', 'closed'], {
      description:
        '`open`: anyone with an e-mail address can become a consumer. `closed`: new consumers cannot register.',
    }),
  },
  { description: 'The provider `hosted`.' },
);

const Origins = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  maxItems: ORIGINS_MAX,
  description:
    'Origins whose pages may send consumer requests and embed hand-off pages in a frame, for example `https://shop.example`.',
});

const RedirectUris = Type.Array(Type.String({ minLength: 1, maxLength: URL_CHARACTERS_MAX }), {
  maxItems: REDIRECT_URIS_MAX,
  description:
    'Addresses to which the browser may be redirected after a sign-in. They are compared byte for byte, except that the port of a loopback address may differ. `https`, or `http` on loopback.',
});

const Colour = Type.String({
  pattern: '^#[0-9a-f]{6}$',
  description: 'The colour of the buttons on the sign-in pages, for example `#0b6477`.',
});

const Seconds = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description });
const SessionTtl = Seconds(300, 86_400, 'Seconds for which an access token is valid.');
const RefreshTtl = Seconds(3600, 90 * 86_400, 'Seconds after which a consumer has to sign in again.');

export const ApplicationIdentity = Type.Object(
  {
    issuer: Type.String({ description: 'Value of the `iss` parameter when the browser returns from a sign-in.' }),
    hosted: HostedSettings,
    colour: Type.Optional(Colour),
    origins: Origins,
    redirectUris: RedirectUris,
    sessionTtl: SessionTtl,
    refreshTtl: RefreshTtl,
    consumers: Type.Object({ total: Type.Integer({ minimum: 0 }) }, { description: 'Number of consumers.' }),
    revision: Type.Integer({ description: 'Increases with each change.' }),
  },
  { description: 'How the consumers of an application sign in.' },
);
export type ApplicationIdentity = Static<typeof ApplicationIdentity>;

export const ReplaceIdentity = Type.Object({
  hosted: Type.Optional(HostedSettings),
  colour: Type.Optional(Colour),
  origins: Type.Optional(Origins),
  redirectUris: Type.Optional(RedirectUris),
  sessionTtl: Type.Optional(SessionTtl),
  refreshTtl: Type.Optional(RefreshTtl),
});
export type ReplaceIdentity = Static<typeof ReplaceIdentity>;

export const PROVIDERS_MAX = 10;

export const ProviderParams = Type.Object({
  ...ApplicationParams.properties,
  providerId: Type.String({ pattern: '^[a-z][a-z0-9-]{1,63}$', description: 'Id of the provider. You choose it.' }),
});

const Title = Type.String({ minLength: 1, maxLength: 64, description: 'Display name.' });
const Issuer = Type.String({
  minLength: 8,
  maxLength: URL_CHARACTERS_MAX,
  description: 'Issuer of the provider, exactly as its discovery document names it.',
});
const ClientId = Type.String({ minLength: 1, maxLength: 255, description: 'Id of the client at the provider.' });
const AuthMethod = Type.Enum(['client_secret_basic', 'client_secret_post', 'none'], {
  description: 'How the client authenticates at the token endpoint.',
});
const Scopes = Type.Array(Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,64}$' }), {
  maxItems: 20,
  description: 'Scopes in addition to `openid`.',
});

export const WriteProvider = Type.Object({
  title: Title,
  issuer: Issuer,
  clientId: ClientId,
  clientSecret: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1024,
      description:
        'Secret of the client. It is sealed and never returned. If absent, the stored secret is kept, provided that the issuer is the same.',
    }),
  ),
  authMethod: Type.Optional(AuthMethod),
  scopes: Type.Optional(Scopes),
  enabled: Type.Optional(
    Type.Boolean({ description: 'Whether consumers can sign in with the provider. Default: true.' }),
  ),
});
export type WriteProvider = Static<typeof WriteProvider>;

export const ConsumerProvider = Type.Object(
  {
    id: Type.String({ description: 'Id of the provider.' }),
    title: Title,
    issuer: Type.String(),
    clientId: Type.String(),
    clientSecret: Type.Enum(['set', 'missing'], { description: 'Whether a secret is stored.' }),
    authMethod: AuthMethod,
    scopes: Type.Array(Type.String()),
    enabled: Type.Boolean(),
    redirectUri: Type.String({ description: 'Redirect address. Register it at the provider.' }),
    canEndSessions: Type.Boolean({ description: 'Whether consumers can also be signed out at the provider.' }),
    revision: Type.Integer({ description: 'Increases with each change.' }),
    createdAt: Time('When the provider was added.'),
    updatedAt: Time('When the provider was last written and its discovery document was read.'),
  },
  { description: 'An OpenID provider with which consumers sign in.' },
);
export type ConsumerProvider = Static<typeof ConsumerProvider>;

export const ConsumerProviders = Type.Object({ data: Type.Array(ConsumerProvider, { description: 'Ordered by id.' }) });
export type ConsumerProviders = Static<typeof ConsumerProviders>;

// ---- sessions ------------------------------------------------------------------------------------------------------

export const ConsumerParams = Type.Object({
  ...ApplicationParams.properties,
  providerId: Type.String({
    pattern: '^[a-z][a-z0-9-]{1,63}$',
    description: 'Id of a provider of the application: `hosted`, or one that it has added.',
  }),
});
export type ConsumerParams = Static<typeof ConsumerParams>;

const RedirectUri = Type.String({
  minLength: 1,
  maxLength: URL_CHARACTERS_MAX,
  description: 'A registered address of the application, to which the browser returns.',
});

export const StartConsumerSession = Type.Object({
  redirectUri: RedirectUri,
  codeChallenge: Type.String({
    minLength: 43,
    pattern: '^[A-Za-z0-9_-]{43}$',
    description: 'SHA-256 of the code verifier in base64url (PKCE, S256).',
  }),
  state: Type.Optional(
    Type.String({
      maxLength: 512,
      description: 'Any value that you choose. It is returned unchanged, together with the code.',
    }),
  ),
  prompt: Type.Optional(
    Type.Enum(['login', 'consent', 'select_account'], {
      description: 'The `prompt` parameter that is sent to an OpenID provider.',
    }),
  ),
  maxAge: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      description: 'Maximum number of seconds since the person last proved their identity. An older proof is refused.',
    }),
  ),
  loginHint: Type.Optional(
    Type.String({ maxLength: EMAIL_CHARACTERS_MAX, description: 'E-mail address with which the page is prefilled.' }),
  ),
  transport: Type.Optional(
    Type.Enum(['token', 'cookie'], {
      description: '`token` (default): the exchange returns tokens. `cookie`: for pages of this service only.',
    }),
  ),
});
export type StartConsumerSession = Static<typeof StartConsumerSession>;

export const StartedConsumerSession = Type.Object(
  {
    authorizationUrl: Type.String({ description: 'Address to open in the browser of the consumer.' }),
    expiresAt: Time('When the sign-in expires unless it is completed.'),
  },
  { description: 'A sign-in that has been started.' },
);
export type StartedConsumerSession = Static<typeof StartedConsumerSession>;

export const ExchangeConsumerCode = Type.Object({
  code: Type.String({ minLength: 1, maxLength: 128, description: 'The `code` of the redirect, `bxc_…`.' }),
  codeVerifier: Type.String({
    minLength: 43,
    pattern: '^[A-Za-z0-9._~-]{43,128}$',
    description: 'The code verifier, whose SHA-256 was sent as the code challenge.',
  }),
  redirectUri: RedirectUri,
});
export type ExchangeConsumerCode = Static<typeof ExchangeConsumerCode>;

export const RefreshConsumerSession = Type.Object({
  refreshToken: Type.String({ minLength: 1, maxLength: 128, description: 'The newest refresh token, `bcr_…`.' }),
});
export type RefreshConsumerSession = Static<typeof RefreshConsumerSession>;

const ConsumerIdentity = Type.Object(
  {
    id: Uuid('Id of the consumer.'),
    providerId: Type.String({ description: 'The provider that the consumer signs in with.' }),
    subject: Type.String({
      description:
        'Name of the consumer within the application and the provider. Other applications see a different name.',
    }),
    createdAt: Time('When the consumer first signed in.'),
  },
  { description: 'An end user of the application.' },
);

export const ConsumerSession = Type.Object(
  {
    consumer: ConsumerIdentity,
    acr: Type.Enum([...ACRS], { description: 'How strongly the person proved their identity.' }),
    authTime: Type.Integer({ description: 'When the proof was given, in seconds since 1970.' }),
    expiresAt: Time('When the access token expires.'),
  },
  { description: 'The session of a consumer.' },
);
export type ConsumerSession = Static<typeof ConsumerSession>;

export const ConsumerTokens = Type.Object(
  {
    accessToken: Type.Optional(Type.String({ description: '`bcs_…`. Absent with the transport `cookie`.' })),
    expiresIn: Type.Integer({ description: 'Seconds for which the access token is valid.' }),
    refreshToken: Type.Optional(
      Type.String({ description: '`bcr_…`. Valid once. If it is sent a second time, the session ends.' }),
    ),
    consumer: ConsumerIdentity,
    acr: Type.Enum([...ACRS], { description: 'How strongly the person proved their identity.' }),
    authTime: Type.Integer({ description: 'When the proof was given, in seconds since 1970.' }),
  },
  { description: 'The tokens of a consumer session.' },
);
export type ConsumerTokens = Static<typeof ConsumerTokens>;

export const EndedConsumerSession = Type.Object(
  {
    logoutUrl: Type.String({
      description: 'Open this address in the browser to sign the consumer out at the provider.',
    }),
  },
  { description: 'The session has ended at this service. It can also be ended at the provider.' },
);
export type EndedConsumerSession = Static<typeof EndedConsumerSession>;

// ---- the sign-in page of `hosted` ----------------------------------------------------------------------------------

const SignInId = Uuid('Id of the sign-in, from the address of the page.');
const Ticket = Uuid('The `ticket` of the previous response.');
const Password = Type.String({ minLength: 1, maxLength: PASSWORD_CHARACTERS_MAX, description: 'The password.' });

export const DescribeHostedSignIn = Type.Object({ signIn: SignInId });
export type DescribeHostedSignIn = Static<typeof DescribeHostedSignIn>;

export const HostedSignIn = Type.Object(
  {
    application: Type.Object({
      name: Type.String({ description: 'Name of the application.' }),
      colour: Type.Optional(Colour),
    }),
    methods: Type.Array(Type.Enum([...SIGN_IN_METHODS]), {
      description: 'The methods with which the sign-in can begin.',
    }),
    registration: Type.Enum(['open', 'closed']),
    loginHint: Type.Optional(Type.String({ description: 'E-mail address with which the page is prefilled.' })),
    returnsTo: Type.String({ description: 'The origin that the browser returns to.' }),
    expiresAt: Time('When the sign-in expires unless it is completed.'),
  },
  { description: 'What the sign-in page shows.' },
);
export type HostedSignIn = Static<typeof HostedSignIn>;

export const HostedPassword = Type.Object({ signIn: SignInId, email: Email('E-mail address.'), password: Password });
export type HostedPassword = Static<typeof HostedPassword>;

export const HostedCode = Type.Object({ signIn: SignInId, email: Email('E-mail address.') });
export type HostedCode = Static<typeof HostedCode>;

export const HostedRegister = Type.Object({
  signIn: SignInId,
  email: Email('E-mail address.'),
  password: NewPassword,
  displayName: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Name of a new consumer.' })),
});
export type HostedRegister = Static<typeof HostedRegister>;

export const HostedVerify = Type.Object({ signIn: SignInId, ticket: Ticket, code: Code });
export type HostedVerify = Static<typeof HostedVerify>;

export const HostedPasskeyOptions = Type.Object({ signIn: SignInId });
export type HostedPasskeyOptions = Static<typeof HostedPasskeyOptions>;

export const HostedPasskey = Type.Object({ signIn: SignInId, ticket: Ticket, response: PasskeyResponse });
export type HostedPasskey = Static<typeof HostedPasskey>;

export const HostedSignInResult = Type.Object(
  {
    redirectTo: Type.String({
      description: 'Address to open next in the browser. It contains the code, which is valid for 60 seconds.',
    }),
  },
  { description: 'The sign-in is complete.' },
);
export type HostedSignInResult = Static<typeof HostedSignInResult>;

// ---- profile and passkeys ------------------------------------------------------------------------------------------

const DisplayName = Type.String({ minLength: 1, maxLength: 64, description: 'Display name.' });
const Locale = Type.String({ minLength: 2, maxLength: 35, description: 'Language tag (BCP 47), for example `de-AT`.' });
const Timezone = Type.String({ minLength: 1, maxLength: 64, description: 'Time zone, for example `Europe/Vienna`.' });
const Metadata = AnyObject('Any data that the application stores about the consumer. At most 4 KiB as JSON.');

export const ConsumerProfile = Type.Object(
  {
    ...ConsumerIdentity.properties,
    email: Type.Optional(Type.String({ description: 'E-mail address in lower case. Only for the provider `hosted`.' })),
    displayName: Type.Optional(DisplayName),
    locale: Type.Optional(Locale),
    timezone: Type.Optional(Timezone),
    metadata: Type.Optional(Metadata),
    linked: Type.Optional(
      Type.Array(EndUser, {
        description: 'Other identities with which the consumer can sign in, and by which agents may name the consumer.',
      }),
    ),
  },
  { description: 'What is stored about a consumer, apart from the memory.' },
);
export type ConsumerProfile = Static<typeof ConsumerProfile>;

export const UpdateProfile = Type.Object({
  displayName: Type.Optional(DisplayName),
  locale: Type.Optional(Locale),
  timezone: Type.Optional(Timezone),
  metadata: Type.Optional(Metadata),
});
export type UpdateProfile = Static<typeof UpdateProfile>;

export const ConsumerPasskey = Type.Object({
  id: Uuid('Id of the passkey.'),
  name: Type.String(),
  createdAt: Time('When the passkey was added.'),
  lastUsedAt: Type.Optional(Time('When the passkey was last used.')),
});

export const ConsumerPasskeys = Type.Object({ data: Type.Array(ConsumerPasskey) });
export type ConsumerPasskeys = Static<typeof ConsumerPasskeys>;

export const AddConsumerPasskey = Type.Object({
  ticket: Ticket,
  name: Type.String({ minLength: 1, maxLength: 64, description: 'Name by which the passkey can be recognized.' }),
  response: PasskeyResponse,
});
export type AddConsumerPasskey = Static<typeof AddConsumerPasskey>;

export const RemoveConsumerPasskey = Type.Object({ id: Uuid('Id of the passkey.') });
export type RemoveConsumerPasskey = Static<typeof RemoveConsumerPasskey>;

export const StepUpConsumer = Type.Object({ ticket: Ticket, response: PasskeyResponse });
export type StepUpConsumer = Static<typeof StepUpConsumer>;

// ---- Actions ---------------------------------------------------------------------------------------------------------

const JobId = Uuid('Id of the Action.');

export const ListConsumerActions = Type.Object({
  status: Type.Optional(Type.Enum([...ACTION_STATUSES], { description: 'Only Actions with this status.' })),
  ...PageQuery.properties,
});
export type ListConsumerActions = Static<typeof ListConsumerActions>;

export const ActionRef = Type.Object({ jobId: JobId });
export type ActionRef = Static<typeof ActionRef>;

const { digest, proof, message } = DecideAction.properties;

export const ApproveAction = Type.Object({ jobId: JobId, digest, proof });
export type ApproveAction = Static<typeof ApproveAction>;

export const RefuseAction = Type.Object({ jobId: JobId, digest, message });
export type RefuseAction = Static<typeof RefuseAction>;
