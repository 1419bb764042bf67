// Errors of the OAuth routes: the fields of RFC 6749 and those of all other errors, in one object.
import { type Static, Type } from 'typebox';
import { ErrorBody } from './common.ts';
import { catalogueEntry, type ErrorCode } from './errors.ts';

export const OAuthError = Type.Object(
  {
    ...ErrorBody.properties,
    error: Type.String({
      description:
        'Error code of RFC 6749, 8628 or 8707. The same as `code` if that is such a code; otherwise `invalid_request`, `access_denied`, `temporarily_unavailable` or `server_error`.',
    }),
    error_description: Type.String({ description: 'The message in ASCII.' }),
  },
  { description: 'The body of every error of the OAuth routes.' },
);
export type OAuthError = Static<typeof OAuthError>;

const OAUTH_CODES: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'invalid_grant',
  'invalid_client',
  'invalid_scope',
  'invalid_target',
  'unsupported_grant_type',
]);

/** Returns the OAuth `error` for an error code of the API. */
export function oauthErrorOf(code: ErrorCode): string {
  if (OAUTH_CODES.has(code)) return code;
  const { status } = catalogueEntry(code);
  if (status === 429 || status === 503) return 'temporarily_unavailable';
  if (status >= 500) return 'server_error';
  return status === 409 ? 'access_denied' : 'invalid_request';
}
