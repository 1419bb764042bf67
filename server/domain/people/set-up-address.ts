// The address of a link that sets up an account.
import type { Secret } from '../../kit/secret.ts';

/** Passkeys need a host name, and a browser knows this machine only as `localhost`. */
export const setUpAddress = (publicUrl: string, secret: Secret): string =>
  `${publicUrl.replace(/^http:\/\/(127\.0\.0\.1|\[::1\])/, 'http://localhost')}/signin#setup=${secret.reveal()}`;
