import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, type ErrorCode } from '../../../contract/errors.ts';
import { oauthFailure } from './oauth-failure.ts';

/** The error codes of RFC 6749 (4.1.2.1 and 5.2), RFC 8628 (3.5) and RFC 8707 (2). */
const STANDARD_CODES: ReadonlySet<string> = new Set([
  ...['invalid_request', 'invalid_client', 'invalid_grant', 'invalid_scope', 'unauthorized_client'],
  ...['unsupported_grant_type', 'unsupported_response_type', 'access_denied'],
  ...['server_error', 'temporarily_unavailable'],
  ...['authorization_pending', 'slow_down', 'expired_token'],
  'invalid_target',
]);

const bodyOf = (code: string, message = 'It failed.') =>
  oauthFailure({ statusCode: 400, error: 'Bad Request', message, code, requestId: 'req_1' });

test('keeps OAuth error codes, and maps all other codes to standard OAuth codes', () => {
  const expectedErrors: Readonly<Partial<Record<ErrorCode, string>>> = {
    slow_down: 'slow_down',
    invalid_scope: 'invalid_scope',
    unknown_field: 'invalid_request',
    payload_too_large: 'invalid_request',
    rate_limited: 'temporarily_unavailable',
    database_unreachable: 'temporarily_unavailable',
    limit_reached: 'access_denied',
    internal: 'server_error',
  };
  for (const [code, error] of Object.entries(expectedErrors)) assert.equal(bodyOf(code).error, error, code);
  for (const code of Object.keys(ERRORS)) {
    const { error } = bodyOf(code);
    if (STANDARD_CODES.has(code)) assert.equal(error, code);
    else assert.ok(STANDARD_CODES.has(error), `${code} becomes ${error}`);
  }
});

test('replaces disallowed characters in the description of an OAuth error, but not in the message', () => {
  const { error_description: description, message } = bodyOf('internal', 'Send "bdc_…"\\ – now.');
  assert.equal(description, "Send 'bdc_...'? ? now.");
  assert.equal(message, 'Send "bdc_…"\\ – now.');
});
