// The faults for credentials. The response is the same for malformed, unknown, expired and revoked credentials, so that
// it does not reveal which of these is the case.
import { fault } from '../faults.ts';

/** The kinds of credential that operations accept: see `Credential` in contract/operation.ts. */
export type AcceptedCredential = 'agentKey' | 'account' | 'human' | 'consumer' | 'agentKeyOrAccount';

const EXPECTED_KINDS = {
  agentKey: 'agent_key',
  account: 'personal_access_token',
  human: 'human_session',
  consumer: 'consumer_session',
  agentKeyOrAccount: 'agent_key or personal_access_token',
} as const satisfies Record<AcceptedCredential, string>;

const CREDENTIAL_NAMES = {
  agentKey: 'an agent key (bak_…)',
  account: 'a personal access token (bpt_…) or a developer token (bdt_…)',
  human: 'a console sign-in cookie',
  consumer: 'the token of a consumer session (bcs_…)',
  agentKeyOrAccount: 'an agent key (bak_…), a personal access token (bpt_…) or a developer token (bdt_…)',
} as const satisfies Record<AcceptedCredential, string>;

const ADVICE = {
  agentKey: `Send the header Authorization: Bearer with ${CREDENTIAL_NAMES.agentKey}.`,
  account: `Send the header Authorization: Bearer with ${CREDENTIAL_NAMES.account}.`,
  human: 'Sign in at /signin with a browser. No token can call this operation.',
  consumer: `Sign in with session.start, and send the header Authorization: Bearer with ${CREDENTIAL_NAMES.consumer}.`,
  agentKeyOrAccount: `Send the header Authorization: Bearer with ${CREDENTIAL_NAMES.agentKeyOrAccount}.`,
} as const satisfies Record<AcceptedCredential, string>;

export const credentialMissing = (expected: AcceptedCredential): Error =>
  fault('missing_credentials', 'The request has no credential.', {
    advice: ADVICE[expected],
    details: { expected: EXPECTED_KINDS[expected] },
  });

export const twoCredentials = (): Error =>
  fault('invalid_credentials', 'The headers Authorization and X-BB-API-Key contain different credentials.', {
    advice: 'Send only one of these headers.',
  });

export const wrongCredentialKind = (expected: AcceptedCredential): Error =>
  fault(
    'invalid_credentials',
    `This operation requires ${CREDENTIAL_NAMES[expected]}. The request has a different kind of credential.`,
    {
      details: { expected: EXPECTED_KINDS[expected] },
    },
  );

export const credentialInvalid = (expected: AcceptedCredential): Error =>
  fault('invalid_credentials', 'The credential is not valid.', {
    advice:
      expected === 'human'
        ? 'Sign in again.'
        : `Send ${CREDENTIAL_NAMES[expected]} that is neither expired nor revoked.`,
  });

export const addressNotAllowed = (): Error =>
  fault('address_not_allowed', 'This credential may not be used from your address.', {
    advice: 'Call from an address in the cidrAllow of the credential, or change cidrAllow.',
  });
