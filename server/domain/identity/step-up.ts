// Step-up (RFC 9470): whether a person has recently proved who they are, with the strongest proof that the account can
// give.
import { ACRS, STEP_UP_MAX_AGE_SECONDS } from '../../../contract/sign-in.ts';
import { fault } from '../faults.ts';
import type { AccountCaller, ConsumerCaller } from './caller.ts';

/**
 * Throws unless the person has recently given the strongest proof of identity that they can give. A token never
 * satisfies this requirement.
 * @throws Fault `insufficient_user_authentication`
 */
export function assertSteppedUp(
  { kind, via }: Pick<AccountCaller, 'kind' | 'via'> | Pick<ConsumerCaller, 'kind' | 'via'>,
  now: Date,
): void {
  const isSession = via.kind === 'human_session' || via.kind === 'consumer_session';
  const requiredAcr = isSession ? via.strongestAcr : ACRS[0];
  if (isSession) {
    const isRecent = now.getTime() - via.authTime.getTime() <= STEP_UP_MAX_AGE_SECONDS * 1000;
    if (isRecent && ACRS.indexOf(via.acr) >= ACRS.indexOf(requiredAcr)) return;
  }
  const [message, advice] = isSession
    ? [
        'This operation requires a recent proof of your identity.',
        'Prove your identity with your passkey, code or password, then send the request again.',
      ]
    : [
        'This operation requires a recent proof of identity, which this credential cannot give.',
        'Sign in with a browser, prove your identity, and send the request from there.',
      ];
  throw fault('insufficient_user_authentication', message, {
    advice,
    details: {
      ...{ acrValues: requiredAcr, maxAge: STEP_UP_MAX_AGE_SECONDS },
      ...(kind === 'account' ? { stepUpUrl: '/signin?step-up' } : {}),
    },
  });
}
