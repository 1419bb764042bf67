// Device authorization (RFC 8628): a program shows a code, a person approves it in a browser, and the program collects
// a developer token. The fields that the program sends and receives have the names that the OAuth standards define.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';
import { ROLES } from './roles.ts';
import { TOKEN_SCOPES } from './tokens.ts';

export const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
export const DEVICE_CODE_LIFETIME_SECONDS = 600;
export const POLL_INTERVAL_SECONDS = 5;
/** Lifetime of a developer token: a working day. The token cannot be renewed. */
export const DEVELOPER_TOKEN_LIFETIME_SECONDS = 8 * 3600;
export const DEFAULT_DEVICE_SCOPES = ['applications:read', 'keys:write'] as const;
/**
 * The characters of user codes. Characters that are easily confused are excluded, and so are vowels, because they form
 * words.
 */
export const USER_CODE_ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ23456789';
export const STATUS_WAIT_SECONDS_MAX = 55;

const SCOPE_CHARACTERS_MAX = 1024;
const CODE_CHARACTERS_MAX = 256;

export const DEVICE_STATUSES = ['pending', 'claimed', 'approved', 'redeemed', 'denied', 'expired'] as const;
export type DeviceStatus = (typeof DEVICE_STATUSES)[number];

const Status = Type.Enum([...DEVICE_STATUSES], {
  description:
    '`pending`: nobody has opened the request. `claimed`: a person has opened it, and nobody else can open it. `approved`: the token can be collected. `redeemed`: the token was collected. `redeemed`, `denied` and `expired` are final.',
});

const CLIENT_ID_OPTIONS = {
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9._:-]+$',
} as const;

export const StartDevice = Type.Object({
  client_id: Type.String({
    ...CLIENT_ID_OPTIONS,
    description: 'Name of the program, as given by the program. Shown to the person as unverified.',
  }),
  scope: Type.Optional(
    Type.String({
      maxLength: SCOPE_CHARACTERS_MAX,
      description: `Permissions to request for the token, separated by spaces. Defaults to \`${DEFAULT_DEVICE_SCOPES.join(' ')}\`. See the scopes of tokens.`,
    }),
  ),
  device_name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Name of the device, shown to the person and in the list of tokens. Defaults to `client_id`.',
    }),
  ),
  code_challenge: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{43}$',
      description:
        'Binds the device code to this program (RFC 7636): the token is issued only with the `code_verifier`.',
    }),
  ),
  code_challenge_method: Type.Optional(
    Type.Enum(['S256'], { description: 'Required with `code_challenge`: SHA-256 of the verifier in base64url.' }),
  ),
  resource: Type.Optional(
    Type.String({
      maxLength: 512,
      description: 'The address of this service (RFC 8707). Any other address is refused.',
    }),
  ),
});
export type StartDevice = Static<typeof StartDevice>;

export const StartedDevice = Type.Object(
  {
    id: Uuid('Id of the authorization.'),
    device_code: Type.String({ description: 'Secret of the program, `bdc_…`. Never show it to the person.' }),
    user_code: Type.String({ description: 'The code to show to the person, for example `KQTM-7HXD`.' }),
    verification_uri: Type.String({ description: 'The address to show to the person.' }),
    verification_uri_complete: Type.String({
      description: 'The same address with the code in its fragment, for a link or a QR code.',
    }),
    expires_in: Type.Integer({ description: 'Seconds until both codes expire.' }),
    interval: Type.Integer({ description: 'Minimum number of seconds between two requests for the token.' }),
  },
  { description: 'A started authorization.' },
);
export type StartedDevice = Static<typeof StartedDevice>;

export const UserCodeQuery = Type.Object({
  user_code: Type.String({
    minLength: 1,
    maxLength: 32,
    description: 'The code that the program shows. Case, spaces and dashes are ignored.',
  }),
});

export const DeviceRequest = Type.Object(
  {
    id: Uuid('Id of the authorization.'),
    status: Status,
    client: Type.Object({
      id: Type.String({ description: 'Name of the program, as given by the program.' }),
      verified: Type.Boolean({ description: 'Whether the service has verified the name.' }),
    }),
    deviceName: Type.Optional(Type.String({ description: 'Name of the device, as given by the program.' })),
    scopes: Type.Array(Type.String(), {
      description: 'The permissions that the program requested or, after approval, the permissions that were granted.',
    }),
    requestedFrom: Type.Object({
      ip: Type.String({ description: 'Address of the program.' }),
      isYourNetwork: Type.Boolean({
        description: 'Whether your own address is in the same network (/24 of IPv4, /48 of IPv6).',
      }),
    }),
    userAgent: Type.Optional(Type.String({ description: 'The `User-Agent` of the program.' })),
    startedAt: Time('When the program started the authorization.'),
    expiresAt: Time('When the code expires.'),
    applications: Type.Array(
      Type.Object({ id: Uuid('Id of the application.'), name: Type.String(), role: Type.Enum([...ROLES]) }),
      {
        description:
          'Applications that you may give access to, newest first: those in which you have the role developer or higher.',
      },
    ),
  },
  { description: 'The access that a program requests from a person.' },
);
export type DeviceRequest = Static<typeof DeviceRequest>;

export const DeviceParams = Type.Object({ id: Uuid('Id of the authorization.') });

export const DeviceStatusQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: STATUS_WAIT_SECONDS_MAX,
      default: 0,
      description: 'Seconds to wait for a change of the status.',
    }),
  ),
  since: Type.Optional(
    Type.Enum([...DEVICE_STATUSES], {
      description:
        'With `wait`, the status that you last read. A different status is returned at once. Defaults to the current status.',
    }),
  ),
});
export type DeviceStatusQuery = Static<typeof DeviceStatusQuery>;

export const DeviceState = Type.Object(
  {
    id: Uuid('Id of the authorization.'),
    status: Status,
    expiresIn: Type.Integer({ minimum: 0, description: 'Seconds until the codes expire.' }),
    interval: Type.Integer({ description: 'Minimum number of seconds between two requests.' }),
  },
  { description: 'The progress of an authorization.' },
);
export type DeviceState = Static<typeof DeviceState>;

export const DecideDevice = Type.Object({
  userCode: Type.String({
    minLength: 1,
    maxLength: 32,
    description:
      'The code that the program shows. Read the authorization first: only the person who reads it first can decide.',
  }),
  decision: Type.Enum(['approve', 'deny'], {
    description: '`approve` requires a recent proof of identity; `deny` does not.',
  }),
  applicationIds: Type.Optional(
    Type.Array(Uuid('Id of an application.'), {
      maxItems: 50,
      description:
        'Applications that the token gives access to; you must have the role developer or higher in each. Required to approve. If the list is empty and the scope `applications:write` is granted, the token gives access to the one application that the program will create.',
    }),
  ),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...TOKEN_SCOPES]), {
      minItems: 1,
      maxItems: TOKEN_SCOPES.length,
      description: 'Permissions to grant, a subset of those requested. Defaults to all of them.',
    }),
  ),
});
export type DecideDevice = Static<typeof DecideDevice>;

export const DecidedDevice = Type.Object(
  { id: Uuid('Id of the authorization.'), status: Type.Enum(['approved', 'denied']) },
  { description: 'The decision.' },
);
export type DecidedDevice = Static<typeof DecidedDevice>;

const OptionalText = (description: string) =>
  Type.Optional(Type.String({ maxLength: CODE_CHARACTERS_MAX, description }));

/**
 * The schema requires only `grant_type`, because requests with other grant types have other parameters and are refused
 * with `unsupported_grant_type`.
 */
export const CollectToken = Type.Object({
  grant_type: Type.String({ maxLength: CODE_CHARACTERS_MAX, description: `\`${DEVICE_GRANT_TYPE}\`.` }),
  device_code: OptionalText('Required: the device code.'),
  client_id: OptionalText('Required: the same as at the start of the authorization.'),
  code_verifier: OptionalText('Required if a `code_challenge` was sent at the start: 43 to 128 characters (RFC 7636).'),
});
export type CollectToken = Static<typeof CollectToken>;

export const CollectedToken = Type.Object(
  {
    access_token: Type.String({ description: 'The developer token, `bdt_…`. It cannot be shown again.' }),
    token_type: Type.Enum(['Bearer']),
    expires_in: Type.Integer({ description: 'Seconds until the token expires. It cannot be renewed.' }),
    scope: Type.String({ description: 'Granted permissions, separated by spaces.' }),
    token_id: Uuid('Id of the token.'),
    application_ids: Type.Array(Type.String(), {
      description: 'Ids of the applications that the token is restricted to.',
    }),
  },
  { description: 'A developer token.' },
);
export type CollectedToken = Static<typeof CollectedToken>;
