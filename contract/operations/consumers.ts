// Commands of consumers. Consumers can send only the commands that are listed, and every command is a POST.
import { ActionChallenge, ApplicationAction, ApplicationActionPage } from '../actions.ts';
import { LinkProfile } from '../consumer-data.ts';
import {
  ActionRef,
  AddConsumerPasskey,
  ApproveAction,
  ConsumerParams,
  ConsumerPasskeys,
  ConsumerProfile,
  ConsumerSession,
  ConsumerTokens,
  DescribeHostedSignIn,
  EndedConsumerSession,
  ExchangeConsumerCode,
  HostedCode,
  HostedPasskey,
  HostedPasskeyOptions,
  HostedPassword,
  HostedRegister,
  HostedSignIn,
  HostedSignInResult,
  HostedVerify,
  ListConsumerActions,
  RefreshConsumerSession,
  RefuseAction,
  RemoveConsumerPasskey,
  StartConsumerSession,
  StartedConsumerSession,
  StepUpConsumer,
  UpdateProfile,
} from '../consumers.ts';
import type { Operation } from '../operation.ts';
import { EmailCodeSent, PasskeyChallenge } from '../sign-in.ts';
import { COMMANDS_PATH, CONSUMER_COMMAND } from './of-consumer.ts';

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
const EXAMPLE_DIGEST = `sha256:${'4b'.repeat(32)}`;
const DECISION_ERRORS = [
  'not_found',
  'already_decided',
  'digest_mismatch',
  'gone',
  'insufficient_user_authentication',
  'sign_in_failed',
  'feature_unavailable',
  'rate_limited',
] as const;
const EXAMPLE_CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

/**
 * Commands that do not require a consumer session: they start a sign-in, or exchange a code or a refresh token for new
 * tokens.
 */
const PUBLIC_COMMAND = { ...CONSUMER_COMMAND, credential: 'public', isWrite: true } as const;
/** Commands that our own sign-in page sends. */
const HOSTED_COMMAND = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'public',
  ownPageOnly: true,
  isWrite: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;
/**
 * Commands that only our own pages send. Passkeys belong to the host name of this service, so pages of applications
 * cannot use them.
 */
const OWN_PAGE_COMMAND = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'consumer',
  ownPageOnly: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;

const TOKEN_RESPONSES = {
  200: {
    description: 'The tokens.',
    schema: ConsumerTokens,
    headers: { 'set-cookie': 'The session cookie, if the transport is `cookie`.' },
  },
} as const;
const COOKIE_REMOVAL_HEADERS = {
  'set-cookie': 'Removes the session cookie that a page of this service uses.',
} as const;
const NEW_COOKIE_HEADERS = { 'set-cookie': 'The updated session cookie.' } as const;
const SIGNED_OUT_RESPONSES = {
  200: {
    description: 'Signed out of this service. `logoutUrl` signs out of the provider as well.',
    schema: EndedConsumerSession,
    headers: COOKIE_REMOVAL_HEADERS,
  },
  204: { description: 'Signed out. The provider has no address for signing out.', headers: COOKIE_REMOVAL_HEADERS },
} as const;
const SIGNED_IN_RESPONSES = { 200: { description: 'The consumer is signed in.', schema: HostedSignInResult } } as const;
const CODE_SENT_RESPONSES = {
  202: {
    description: 'The request was accepted. A code is sent only to an address that can sign in.',
    schema: EmailCodeSent,
  },
} as const;

export const CONSUMER_OPERATIONS = {
  // ---- sessions
  startConsumerSession: {
    ...PUBLIC_COMMAND,
    path: `${COMMANDS_PATH}/session.start`,
    summary: 'Start a sign-in',
    description:
      'Returns the address that the browser of the consumer must open. The browser comes back to `redirectUri` with `code`, `state` and `iss`, or with `error`. At most 30 requests per minute from one IP address.',
    body: StartConsumerSession,
    bodyExample: { redirectUri: 'https://shop.example/signed-in', codeChallenge: EXAMPLE_CHALLENGE, state: 'k3' },
    responses: { 200: { description: 'The sign-in was started.', schema: StartedConsumerSession } },
    errors: ['not_found', 'feature_unavailable', 'rate_limited', 'upstream_failed'],
  },
  exchangeConsumerCode: {
    ...PUBLIC_COMMAND,
    path: `${COMMANDS_PATH}/session.exchange`,
    summary: 'Exchange a sign-in code',
    description:
      'Returns the session. A code is valid once, for 60 seconds, with the verifier and the redirect URI of its sign-in. If a code is sent again, the session that it opened ends.',
    body: ExchangeConsumerCode,
    bodyExample: {
      code: 'bxc_…',
      codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      redirectUri: 'https://shop.example/signed-in',
    },
    responses: TOKEN_RESPONSES,
    errors: ['not_found', 'invalid_grant', 'rate_limited'],
  },
  refreshConsumerSession: {
    ...PUBLIC_COMMAND,
    path: `${COMMANDS_PATH}/session.refresh`,
    summary: 'Refresh the session of a consumer',
    description:
      'Returns new tokens and invalidates the old ones. If a refresh token is sent a second time, the session ends, because one of the two senders must have stolen the token.',
    body: RefreshConsumerSession,
    bodyExample: { refreshToken: 'bcr_…' },
    responses: TOKEN_RESPONSES,
    errors: ['not_found', 'invalid_grant', 'rate_limited'],
  },
  readConsumerSession: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/session.get`,
    summary: 'Read the session of a consumer',
    description: 'Returns which consumer is signed in, and how the consumer proved their identity.',
    isWrite: false,
    responses: { 200: { description: 'The session.', schema: ConsumerSession } },
    errors: ['not_found'],
  },
  endConsumerSession: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/session.end`,
    summary: 'Sign a consumer out',
    description:
      'Ends the session at once. If the provider supports sign-out, also returns the address that signs the consumer out there.',
    isWrite: true,
    responses: SIGNED_OUT_RESPONSES,
    errors: ['not_found'],
  },
  endConsumerSessions: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/session.endAll`,
    summary: 'Sign a consumer out everywhere',
    description: 'Ends all sessions of the consumer at once.',
    isWrite: true,
    responses: SIGNED_OUT_RESPONSES,
    errors: ['not_found'],
  },
  stepUpConsumer: {
    ...OWN_PAGE_COMMAND,
    path: `${COMMANDS_PATH}/session.stepUp`,
    summary: 'Prove the identity of a consumer again',
    description:
      'Accepts a challenge from `passkeys.challenge` that a passkey has signed. The session then has the strength of that proof.',
    isWrite: true,
    body: StepUpConsumer,
    bodyExample: { ticket: ID, response: {} },
    responses: { 200: { description: 'The session.', schema: ConsumerSession, headers: NEW_COOKIE_HEADERS } },
    errors: ['not_found', 'sign_in_failed', 'feature_unavailable'],
  },

  // ---- the sign-in page
  describeHostedSignIn: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.describe`,
    summary: 'Read a sign-in',
    description: 'Returns the content of the sign-in page.',
    isWrite: false,
    body: DescribeHostedSignIn,
    bodyExample: { signIn: ID },
    responses: { 200: { description: 'The sign-in.', schema: HostedSignIn } },
    errors: ['not_found', 'cross_site_request', 'rate_limited'],
  },
  signInHostedWithPassword: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.password`,
    summary: 'Sign a consumer in with a password',
    description: 'Signs in with a password. At most ten failures in ten minutes per consumer and IP address.',
    body: HostedPassword,
    bodyExample: { signIn: ID, email: 'kim@example.com', password: 'correct horse battery staple' },
    responses: SIGNED_IN_RESPONSES,
    errors: ['not_found', 'sign_in_failed', 'cross_site_request', 'feature_unavailable', 'rate_limited', 'busy'],
  },
  sendHostedCode: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.code`,
    summary: 'Send a consumer a code',
    description:
      'Sends a code by e-mail, to a consumer or, while registration is open, to anyone. The code is valid for ten minutes. The response does not reveal whether the address belongs to a consumer.',
    body: HostedCode,
    bodyExample: { signIn: ID, email: 'kim@example.com' },
    responses: CODE_SENT_RESPONSES,
    errors: ['not_found', 'cross_site_request', 'feature_unavailable', 'rate_limited'],
  },
  registerHosted: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.register`,
    summary: 'Set the password of a consumer',
    description:
      'Sends a code by e-mail. When the code is entered, the password is set: for a new consumer while registration is open, or for one who forgot the old password. All other sessions of the consumer then end.',
    body: HostedRegister,
    bodyExample: { signIn: ID, email: 'kim@example.com', password: 'correct horse battery staple' },
    responses: CODE_SENT_RESPONSES,
    errors: ['not_found', 'cross_site_request', 'feature_unavailable', 'rate_limited', 'busy'],
  },
  verifyHostedCode: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.verify`,
    summary: 'Sign a consumer in with a code',
    description: 'Five wrong codes invalidate the ticket.',
    body: HostedVerify,
    bodyExample: { signIn: ID, ticket: ID, code: '123456' },
    responses: SIGNED_IN_RESPONSES,
    errors: ['not_found', 'sign_in_failed', 'cross_site_request', 'rate_limited'],
  },
  requestHostedPasskey: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.passkeyOptions`,
    summary: 'Request a challenge for a passkey of a consumer',
    description: 'Returns a challenge for any passkey that the browser has for this service.',
    body: HostedPasskeyOptions,
    bodyExample: { signIn: ID },
    responses: { 200: { description: 'The challenge.', schema: PasskeyChallenge } },
    errors: ['not_found', 'cross_site_request', 'rate_limited', 'feature_unavailable'],
  },
  signInHostedWithPasskey: {
    ...HOSTED_COMMAND,
    path: `${COMMANDS_PATH}/hosted.passkey`,
    summary: 'Sign a consumer in with a passkey',
    description: 'User verification is required. Passkeys of other applications are refused.',
    body: HostedPasskey,
    bodyExample: { signIn: ID, ticket: ID, response: {} },
    responses: SIGNED_IN_RESPONSES,
    errors: ['not_found', 'sign_in_failed', 'cross_site_request', 'rate_limited', 'feature_unavailable'],
  },

  // ---- profile and passkeys
  readConsumerProfile: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/profile.get`,
    summary: 'Read the profile of a consumer',
    description: 'Returns what is stored about the consumer, apart from the memory.',
    isWrite: false,
    responses: { 200: { description: 'The profile.', schema: ConsumerProfile } },
    errors: ['not_found'],
  },
  updateConsumerProfile: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/profile.update`,
    summary: 'Change the profile of a consumer',
    description: 'Changes the fields in the request. Omitted fields keep their values.',
    isWrite: true,
    body: UpdateProfile,
    bodyExample: { displayName: 'Kim', locale: 'de-AT' },
    responses: { 200: { description: 'The profile.', schema: ConsumerProfile } },
    errors: ['not_found'],
  },
  deleteConsumerProfile: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/profile.delete`,
    summary: 'Delete a consumer',
    description:
      'Destroys the profile, the memory and the passkeys, ends all sessions and consents, and cancels open Actions. Receipts remain, without a name. Cannot be undone. Requires a proof of identity from the last five minutes.',
    isWrite: true,
    stepUp: true,
    responses: { 202: { description: 'The consumer was deleted.', headers: COOKIE_REMOVAL_HEADERS } },
    errors: ['not_found', 'insufficient_user_authentication'],
  },
  linkConsumerProfile: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/profile.link`,
    summary: 'Link two consumers who are the same person',
    description:
      'A person who signs in with two providers is two consumers. This operation makes them one: the consumer of `accessToken` becomes another way to sign in as the calling consumer, who gets the passkeys, memory, Actions and receipts of that consumer. The consents and sessions of that consumer end. Cannot be undone. Both must have proved their identity in the last five minutes.',
    isWrite: true,
    stepUp: true,
    body: LinkProfile,
    bodyExample: { accessToken: 'bcs_…' },
    responses: { 200: { description: 'The profile.', schema: ConsumerProfile } },
    errors: ['not_found', 'insufficient_user_authentication', 'invalid_grant', 'name_taken', 'limit_reached'],
  },
  exportConsumerProfile: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/profile.export`,
    summary: 'Export what is kept about a consumer',
    description:
      'Returns a zip archive with the profile, passkeys, sessions, memory, consents, Actions and receipts. It is created while it is sent, and is not stored. Requires a proof of identity from the last five minutes.',
    isWrite: true,
    stepUp: true,
    responses: {
      200: {
        description: 'The archive.',
        contentType: 'application/zip',
        headers: { 'content-disposition': 'The file name of the archive.' },
      },
    },
    errors: ['not_found', 'insufficient_user_authentication'],
  },
  listConsumerPasskeys: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/passkeys.list`,
    summary: 'List the passkeys of a consumer',
    description: 'Returns the passkeys that the consumer has added.',
    isWrite: false,
    responses: { 200: { description: 'The passkeys.', schema: ConsumerPasskeys } },
    errors: ['not_found'],
  },
  requestConsumerPasskey: {
    ...OWN_PAGE_COMMAND,
    path: `${COMMANDS_PATH}/passkeys.options`,
    summary: 'Begin adding a passkey to a consumer',
    description: 'Requires a proof of identity from the last five minutes.',
    isWrite: true,
    stepUp: true,
    responses: { 200: { description: 'The challenge.', schema: PasskeyChallenge } },
    errors: ['not_found', 'insufficient_user_authentication', 'feature_unavailable'],
  },
  addConsumerPasskey: {
    ...OWN_PAGE_COMMAND,
    path: `${COMMANDS_PATH}/passkeys.add`,
    summary: 'Add a passkey to a consumer',
    description: 'The session then counts as signed in with the new passkey.',
    isWrite: true,
    stepUp: true,
    body: AddConsumerPasskey,
    bodyExample: { ticket: ID, name: 'Phone', response: {} },
    responses: { 200: { description: 'The passkeys.', schema: ConsumerPasskeys, headers: NEW_COOKIE_HEADERS } },
    errors: ['not_found', 'insufficient_user_authentication', 'sign_in_failed', 'feature_unavailable', 'limit_reached'],
  },
  removeConsumerPasskey: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/passkeys.remove`,
    summary: 'Remove a passkey of a consumer',
    description: 'Requires a proof of identity from the last five minutes.',
    isWrite: true,
    stepUp: true,
    body: RemoveConsumerPasskey,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The passkeys.', schema: ConsumerPasskeys } },
    errors: ['not_found', 'insufficient_user_authentication'],
  },
  requestConsumerChallenge: {
    ...OWN_PAGE_COMMAND,
    path: `${COMMANDS_PATH}/passkeys.challenge`,
    summary: 'Request a challenge for a passkey of the consumer',
    description: 'Returns a challenge for `session.stepUp`.',
    isWrite: true,
    responses: { 200: { description: 'The challenge.', schema: PasskeyChallenge } },
    errors: ['not_found', 'feature_unavailable'],
  },

  // ---- Actions
  listConsumerActions: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/actions.list`,
    summary: 'List the Actions of a consumer',
    description: 'Returns the Actions whose end user is this consumer, newest first.',
    isWrite: false,
    body: ListConsumerActions,
    bodyExample: { status: 'awaiting_approval' },
    responses: { 200: { description: 'A page of Actions.', schema: ApplicationActionPage } },
    errors: ['not_found'],
  },
  readConsumerAction: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/actions.get`,
    summary: 'Read an Action of a consumer',
    description:
      'Returns who requests the Action, the reason that the agent gave, and a description of the call, made from the content of the Action. `approver` is the kind of person who decides: members decide some Actions that are for a consumer.',
    isWrite: false,
    body: ActionRef,
    bodyExample: { jobId: ID },
    responses: { 200: { description: 'The Action.', schema: ApplicationAction } },
    errors: ['not_found'],
  },
  challengeConsumerAction: {
    ...OWN_PAGE_COMMAND,
    path: `${COMMANDS_PATH}/actions.challenge`,
    summary: 'Request a challenge for an Action of a consumer',
    description: 'The challenge is the digest of the Action.',
    isWrite: false,
    body: ActionRef,
    bodyExample: { jobId: ID },
    responses: { 200: { description: 'The challenge.', schema: ActionChallenge } },
    errors: ['not_found', 'already_decided', 'gone', 'feature_unavailable'],
  },
  approveConsumerAction: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/actions.approve`,
    summary: 'Approve an Action',
    description:
      'Approves exactly this digest, once. An operation that cannot be undone requires the signature of a passkey over the digest (`proof`), or a proof of identity from the last five minutes. Refused if the request is known to come from the browser of a session. At most 60 decisions per hour.',
    isWrite: true,
    body: ApproveAction,
    bodyExample: { jobId: ID, digest: EXAMPLE_DIGEST },
    responses: { 200: { description: 'The Action.', schema: ApplicationAction } },
    errors: DECISION_ERRORS,
  },
  refuseConsumerAction: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/actions.refuse`,
    summary: 'Refuse an Action',
    description: 'Refuses the Action permanently, with a message to the agent.',
    isWrite: true,
    body: RefuseAction,
    bodyExample: { jobId: ID, digest: EXAMPLE_DIGEST, message: 'Not this one.' },
    responses: { 200: { description: 'The Action.', schema: ApplicationAction } },
    errors: DECISION_ERRORS,
  },
} as const satisfies Readonly<Record<string, Operation>>;
