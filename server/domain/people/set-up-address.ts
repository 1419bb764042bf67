// The address of a set-up link for an account.
import type { Secret } from '../../kit/secret.ts';

/**
 * Replaces a loopback address with `localhost`. Passkeys need a host name, and `localhost` is the only host name that a
 * browser on this machine can use.
 */
export const setUpAddress = (publicUrl: string, secret: Secret): string =>
  `${publicUrl.replace(/^http:\/\/(127\.0\.0\.1|\[::1\])/, 'http://localhost')}/signin#setup=${secret.reveal()}`;
