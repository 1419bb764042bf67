// Credentials for other services, which operations use. Values can be written but are never returned.
import { type Static, Type } from 'typebox';
import { Page, Time, Uuid } from './common.ts';
import { CREDENTIAL_ID_OPTIONS } from './credential-names.ts';

export const STORED_CREDENTIALS_PER_APPLICATION_MAX = 500;
export const CREDENTIAL_FILE_BYTES_MAX = 65_536;
/** How many hours a version is kept after it is replaced. It is then destroyed. */
export const EARLIER_VERSION_RETENTION_HOURS = 24;

export const STORED_CREDENTIAL_TYPES = ['api_key', 'basic', 'login', 'oauth_client', 'private_key', 'file'] as const;
export type StoredCredentialType = (typeof STORED_CREDENTIAL_TYPES)[number];

const StoredCredentialId = Type.String({
  ...CREDENTIAL_ID_OPTIONS,
  description: 'Id of the credential, for example `shop-api`.',
});

export const StoredCredentialParams = Type.Object({ appId: Uuid('Id of the application.'), id: StoredCredentialId });

/** `writeOnly`: never shown, not even in the message about an invalid value. */
const SecretText = (description: string) => Type.Optional(Type.String({ description, writeOnly: true }));

const Value = Type.Object(
  {
    key: SecretText('For `api_key`.'),
    username: SecretText('For `basic` and `login`.'),
    password: SecretText('For `basic` and `login`.'),
    totpSeed: SecretText('For `login`, optional: the seed of one-time codes in base32.'),
    clientId: SecretText('For `oauth_client`.'),
    clientSecret: SecretText('For `oauth_client`.'),
    pem: SecretText('For `private_key`, the key in PEM format.'),
    name: SecretText('For `file`, the name of the file.'),
    base64: SecretText(`For \`file\`, its content in base64, at most ${CREDENTIAL_FILE_BYTES_MAX / 1024} KiB.`),
  },
  { description: 'The fields that `type` requires, and no others.', writeOnly: true },
);

const CredentialType = Type.Enum([...STORED_CREDENTIAL_TYPES], {
  description:
    '`api_key`: `{key}`. `basic`: `{username, password}`. `login`: `{username, password, totpSeed?}`. `oauth_client`: `{clientId, clientSecret}`. `private_key`: `{pem}`. `file`: `{name, base64}`.',
});
const Label = Type.String({ minLength: 1, maxLength: 100, description: 'Display name.' });
const Hosts = Type.Array(Type.String({ minLength: 1, maxLength: 260 }), {
  maxItems: 20,
  description:
    'Hosts to which operations may send the credential, such as `api.shop.example` or `api.shop.example:8443`. If no port is given, the standard port applies. Required, except for `login`.',
});
const Origins = Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
  maxItems: 20,
  description: 'Web origins where the credential may be typed, such as `https://bank.example`. Required for `login`.',
});
const ExpiresAt = (description: string) => Type.String({ format: 'date-time', description });

export const WriteStoredCredential = Type.Object({
  type: CredentialType,
  value: Value,
  label: Type.Optional(Label),
  hosts: Type.Optional(Hosts),
  origins: Type.Optional(Origins),
  expiresAt: Type.Optional(ExpiresAt('Operations do not use the credential after this time. Must be in the future.')),
});
export type WriteStoredCredential = Static<typeof WriteStoredCredential>;
export type CredentialValue = WriteStoredCredential['value'];

export const StoredCredential = Type.Object(
  {
    id: StoredCredentialId,
    type: CredentialType,
    label: Type.Optional(Label),
    version: Type.Integer({ description: 'Increases with every rotation and rollback.' }),
    revision: Type.Integer({ description: 'Increases with every change. The `ETag` is this number in double quotes.' }),
    fingerprint: Type.String({
      description:
        'Equal values have the same fingerprint within one application, but not across applications. The value cannot be guessed from the fingerprint.',
    }),
    hosts: Hosts,
    origins: Origins,
    expiresAt: Type.Optional(ExpiresAt('When the credential expires.')),
    createdAt: Time('When the credential was first written.'),
    rotatedAt: Time('When the value was last written.'),
    lastUsedAt: Type.Optional(Time('When an operation last used the credential.')),
    rollbackUntil: Type.Optional(Time('Time until which the previous version can be restored.')),
    usedBy: Type.Array(Type.String(), { description: 'Operations that name the credential.' }),
  },
  { description: 'A credential, without its value.' },
);
export type StoredCredential = Static<typeof StoredCredential>;

export const StoredCredentialPage = Page(StoredCredential, 'Ordered by id.');
export type StoredCredentialPage = Static<typeof StoredCredentialPage>;

export const DeleteStoredCredentialQuery = Type.Object({
  force: Type.Optional(
    Type.Enum(['true', 'false'], {
      default: 'false',
      description:
        'Delete the credential even if a published operation names it. Calls of that operation are then refused.',
    }),
  ),
});
