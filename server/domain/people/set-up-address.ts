// The address of a set-up link for an account.
import type { Secret } from '../../kit/secret.ts';

/** Passkeys need a host name, and the only host name of this machine for its own browser is `localhost`. */
export const setUpAddress = (publicUrl: string, secret: Secret): string =>
  `${publicUrl.replace(/^http:\/\/(127\.0\.0\.1|\[::1\])/, 'http://localhost')}/signin#setup=${secret.reveal()}`;
