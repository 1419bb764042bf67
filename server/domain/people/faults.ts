// Errors of sign-in, and of changes to one's own account. `wrongPassword` and `signInFailed` give no precise reason, so
// that they do not reveal whether an account exists.
import { fault } from '../faults.ts';

export const wrongPassword = (): Error =>
  fault('sign_in_failed', 'The e-mail address or the password is wrong.', {
    advice: 'Check both and try again.',
  });

export function signInFailed(what: 'code' | 'link' | 'sign-in' | 'passkey'): Error {
  const problem = what === 'passkey' ? 'was not accepted, or its request has expired' : 'is not valid, or has expired';
  const advice = what === 'code' ? 'Check it and try again, or start over.' : 'Start over.';
  return fault('sign_in_failed', `The ${what} ${problem}.`, { advice });
}

export const emailTaken = (): Error =>
  fault('email_taken', 'An account with this e-mail address already exists.', { advice: 'Sign in to it instead.' });

export const notReady = (message: string, advice: string): Error => fault('not_ready', message, { advice });
