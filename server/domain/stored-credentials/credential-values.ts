// Validates the values of credentials by type. Error messages never contain a value. Pure.
import type { Issue } from '../../../contract/common.ts';
import {
  CREDENTIAL_FILE_BYTES_MAX,
  type CredentialValue,
  type StoredCredentialType,
} from '../../../contract/stored-credentials.ts';

interface Field {
  readonly name: keyof CredentialValue;
  readonly minLength: number;
  readonly maxLength: number;
  readonly isOptional?: true;
  readonly pattern?: RegExp;
}

const TEXT_CHARACTERS_MAX = 8_192;
const SECRET_CHARACTERS_MIN = 8;
/** Minimum length of a password. A shorter one could not be removed from responses that echo it. */
const PASSWORD_CHARACTERS_MIN = 4;
/** A string without line breaks or other control characters. */
const LINE = /^[^\p{Cc}]*$/u;
/** A string that can be sent in a header without encoding. */
const HEADER_VALUE_PATTERN = /^[\u0020-\u007e]*$/;
const PEM = /^-----BEGIN [A-Z0-9 ]+-----\r?\n[A-Za-z0-9+/=\r\n:,. -]+-----END [A-Z0-9 ]+-----\s*$/;
const BASE64_PATTERN = /^[A-Za-z0-9+/]*={0,2}$/;

const USERNAME_FIELD: Field = { name: 'username', minLength: 1, maxLength: 512, pattern: LINE };

const FIELDS: Readonly<Record<StoredCredentialType, readonly Field[]>> = {
  api_key: [
    { name: 'key', minLength: SECRET_CHARACTERS_MIN, maxLength: TEXT_CHARACTERS_MAX, pattern: HEADER_VALUE_PATTERN },
  ],
  basic: [
    USERNAME_FIELD,
    { name: 'password', minLength: PASSWORD_CHARACTERS_MIN, maxLength: TEXT_CHARACTERS_MAX, pattern: LINE },
  ],
  login: [
    USERNAME_FIELD,
    { name: 'password', minLength: PASSWORD_CHARACTERS_MIN, maxLength: TEXT_CHARACTERS_MAX },
    { name: 'totpSeed', minLength: 16, maxLength: 256, isOptional: true, pattern: /^[A-Z2-7 ]+=*$/i },
  ],
  oauth_client: [
    { name: 'clientId', minLength: 1, maxLength: 512, pattern: LINE },
    { name: 'clientSecret', minLength: SECRET_CHARACTERS_MIN, maxLength: TEXT_CHARACTERS_MAX, pattern: LINE },
  ],
  private_key: [{ name: 'pem', minLength: 64, maxLength: 16_384, pattern: PEM }],
  file: [
    { name: 'name', minLength: 1, maxLength: 255, pattern: LINE },
    { name: 'base64', minLength: 4, maxLength: Math.ceil(CREDENTIAL_FILE_BYTES_MAX / 3) * 4, pattern: BASE64_PATTERN },
  ],
};

/** Returns the problems with the value, field by field. */
export function valueIssues(type: StoredCredentialType, value: CredentialValue): Issue[] {
  const fields = FIELDS[type];
  const fieldNames = new Set(fields.map(({ name }) => name as string));
  return [
    ...Object.keys(value)
      .filter(name => !fieldNames.has(name))
      .map(name => ({ path: `value.${name}`, message: `is not a field of a credential of the type ${type}` })),
    ...fields.flatMap(field => {
      const problem = problemOf(field, value[field.name]);
      return problem === undefined ? [] : [{ path: `value.${field.name}`, message: problem }];
    }),
  ];
}

function problemOf(
  { minLength, maxLength, isOptional, pattern: form }: Field,
  text: string | undefined,
): string | undefined {
  if (text === undefined) return isOptional ? undefined : 'is missing';
  if (text.length < minLength || text.length > maxLength) return `must have ${minLength} to ${maxLength} characters`;
  if (!text.isWellFormed() || text.includes('\0')) return 'contains a character that is not allowed';
  if (
    form === BASE64_PATTERN &&
    (text.length % 4 !== 0 || Buffer.byteLength(text, 'base64') > CREDENTIAL_FILE_BYTES_MAX)
  )
    return `is not base64 of at most ${CREDENTIAL_FILE_BYTES_MAX} bytes`;
  if (!form || form.test(text)) return undefined;
  return form === HEADER_VALUE_PATTERN
    ? 'contains a character that cannot be sent in a header: only printable ASCII characters can'
    : 'does not have the required format';
}

/** Returns the secret strings of a value, which are removed from responses. */
export const secretsIn = (type: StoredCredentialType, value: CredentialValue): string[] => {
  const { key, password, totpSeed, clientSecret, pem, base64, username, clientId } = value;
  const pair =
    type === 'basic' ? `${username}:${password}` : type === 'oauth_client' ? `${clientId}:${clientSecret}` : undefined;
  return [key, password, totpSeed, clientSecret, pem, base64, pair].filter(text => text !== undefined);
};
