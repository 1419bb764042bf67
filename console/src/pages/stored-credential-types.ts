// The types of credentials for other services: the name of each type, and the fields of its value.
import type { CredentialValue, StoredCredentialType } from '../../../contract/stored-credentials.ts';

export interface SecretField {
  readonly name: keyof CredentialValue;
  readonly label: string;
  readonly hint?: string;
  /** `line`: shown while it is typed. `text`: multi-line. `file`: read from a file. Default: hidden. */
  readonly as?: 'line' | 'text' | 'file';
  readonly optional?: boolean;
}

const USERNAME_AND_PASSWORD = [
  { name: 'username', label: 'User name', as: 'line' },
  { name: 'password', label: 'Password' },
] as const satisfies readonly SecretField[];

export const CREDENTIAL_TYPES: Readonly<
  Record<
    StoredCredentialType,
    { readonly name: string; readonly description: string; readonly fields: readonly SecretField[] }
  >
> = {
  api_key: {
    name: 'API key',
    description: 'A key or token. Operations send it as a bearer token, or in a header.',
    fields: [{ name: 'key', label: 'Key' }],
  },
  basic: {
    name: 'User name and password for an API',
    description: 'Operations send both as HTTP basic authentication.',
    fields: USERNAME_AND_PASSWORD,
  },
  login: {
    name: 'Sign-in for a website',
    description: 'Typed only into pages of its origins. No operation sends it over HTTP.',
    fields: [
      ...USERNAME_AND_PASSWORD,
      {
        ...{ name: 'totpSeed', label: 'Seed for one-time codes', optional: true },
        hint: 'The base32 text behind the QR code of the authenticator app. Leave empty if the site does not ask for codes.',
      },
    ],
  },
  oauth_client: {
    name: 'OAuth client',
    description: 'Operations send the client id and the secret as HTTP basic authentication.',
    fields: [
      { name: 'clientId', label: 'Client id', as: 'line' },
      { name: 'clientSecret', label: 'Client secret' },
    ],
  },
  private_key: {
    name: 'Private key',
    description: 'Kept sealed. No operation sends it yet.',
    fields: [{ name: 'pem', label: 'Key in PEM', as: 'text' }],
  },
  file: {
    name: 'File',
    description: 'Kept sealed, at most 64 KiB. No operation sends it yet.',
    fields: [{ name: 'base64', label: 'File', as: 'file' }],
  },
};

/** Converts the value of a select element to a credential type. */
export const typeNamed = (name: string): StoredCredentialType =>
  (Object.keys(CREDENTIAL_TYPES) as StoredCredentialType[]).find(type => type === name) ?? 'api_key';

/** Whether a credential of this type is bound to `origins` instead of `hosts`. */
export const hasOrigins = (type: StoredCredentialType): boolean => type === 'login';
