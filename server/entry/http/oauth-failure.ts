// The error body of the OAuth routes: the usual error body, with the additional fields of RFC 6749.
import type { ErrorBody } from '../../../contract/common.ts';
import { type ErrorCode, isErrorCode } from '../../../contract/errors.ts';
import { type OAuthError, oauthErrorOf } from '../../../contract/oauth.ts';

export function oauthFailure(body: ErrorBody): OAuthError {
  const code: ErrorCode = isErrorCode(body.code) ? body.code : 'internal';
  return { ...body, error: oauthErrorOf(code), error_description: asDescription(body.message) };
}

/**
 * Converts a message to the characters that RFC 6749, 5.2 allows: printable ASCII without double quotes and
 * backslashes.
 */
const asDescription = (message: string): string =>
  message
    .replaceAll('"', "'")
    .replaceAll('…', '...')
    .replace(/[^\x20-\x7e]|\\/g, '?');
