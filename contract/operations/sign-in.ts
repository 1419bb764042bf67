// Signing in with a browser.
import type { Operation } from '../operation.ts';
import {
  EmailCodeSent,
  GiveSecondFactor,
  PasskeyChallenge,
  Register,
  RequestEmailCode,
  SetUpAccount,
  SignInResult,
  SignInWithEmailCode,
  SignInWithPasskey,
  SignInWithPassword,
} from '../sign-in.ts';

const SIGN_IN_RESPONSE = {
  description: 'The person is signed in, or a second factor is required.',
  schema: SignInResult,
  headers: { 'set-cookie': 'The sign-in cookie, once signed in.' },
} as const;

const POST = {
  tag: 'Sign-in',
  method: 'POST',
  credential: 'public',
  isWrite: true,
  mount: 'native',
  unknownFields: 'refuse',
  ownPageOnly: true,
} as const;

export const SIGN_IN_OPERATIONS = {
  setUpAccount: {
    ...POST,
    path: '/v1/sign-in/setup',
    summary: 'Create the first account',
    description:
      'Signs in with the secret of a link that was printed at the first start or by the command `berth accounts link`. The link works once, within 24 hours.',
    body: SetUpAccount,
    bodyExample: { token: 'bsl_…', name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['sign_in_failed', 'cross_site_request', 'email_taken', 'rate_limited', 'busy'],
  },
  register: {
    ...POST,
    path: '/v1/sign-in/register',
    summary: 'Register',
    description:
      'Creates an account and signs in. The e-mail address is not verified yet: see `POST /v1/account/email/verification`. By default an invitation is required: see `registration` in `/v1/config`.',
    body: Register,
    bodyExample: { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['permission_denied', 'cross_site_request', 'email_taken', 'rate_limited', 'busy'],
  },
  signInWithPassword: {
    ...POST,
    path: '/v1/sign-in/password',
    summary: 'Sign in with a password',
    description: 'At most ten failures in ten minutes per account and IP address.',
    body: SignInWithPassword,
    bodyExample: { email: 'ada@example.com', password: 'correct horse battery staple' },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['sign_in_failed', 'cross_site_request', 'rate_limited', 'busy'],
  },
  giveSecondFactor: {
    ...POST,
    path: '/v1/sign-in/second-factor',
    summary: 'Send the second factor',
    description:
      'Completes a sign-in with a code of the authenticator app or a recovery code. Five wrong codes end the sign-in.',
    body: GiveSecondFactor,
    bodyExample: { ticket: '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11', method: 'totp', code: '123456' },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['sign_in_failed', 'cross_site_request', 'rate_limited'],
  },
  requestEmailCode: {
    ...POST,
    path: '/v1/sign-in/email-code',
    summary: 'Request a code by e-mail',
    description:
      'If the account exists, sends a six-digit code, which is valid for ten minutes. The response does not reveal whether the account exists.',
    body: RequestEmailCode,
    bodyExample: { email: 'ada@example.com' },
    responses: {
      202: {
        description: 'The request was accepted. A code is sent only if the account exists.',
        schema: EmailCodeSent,
      },
    },
    errors: ['cross_site_request', 'rate_limited'],
  },
  signInWithEmailCode: {
    ...POST,
    path: '/v1/sign-in/email-code/verify',
    summary: 'Sign in with a code by e-mail',
    description:
      'The correct code signs the person in and verifies the e-mail address. Five wrong codes invalidate the ticket.',
    body: SignInWithEmailCode,
    bodyExample: { ticket: '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11', code: '123456' },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['sign_in_failed', 'cross_site_request', 'rate_limited'],
  },
  requestPasskeyChallenge: {
    ...POST,
    path: '/v1/sign-in/passkey/options',
    summary: 'Request a challenge for a passkey',
    description: 'Returns a challenge for any passkey that the browser has for this service.',
    responses: { 200: { description: 'The challenge.', schema: PasskeyChallenge } },
    errors: ['cross_site_request', 'rate_limited', 'feature_unavailable'],
  },
  signInWithPasskey: {
    ...POST,
    path: '/v1/sign-in/passkey',
    summary: 'Sign in with a passkey',
    description: 'User verification is required. A passkey needs no second factor.',
    body: SignInWithPasskey,
    bodyExample: { ticket: '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11', response: {} },
    responses: { 200: SIGN_IN_RESPONSE },
    errors: ['sign_in_failed', 'cross_site_request', 'rate_limited', 'feature_unavailable'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
