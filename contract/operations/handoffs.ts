// Hand-offs of sessions to people.
import { ApplicationParams } from '../applications.ts';
import {
  ClaimedHandoff,
  CompleteHandoff,
  Handoff,
  HandoffPage,
  HandoffParams,
  HandoffQuery,
  HandoffsQuery,
  RequestHandoff,
} from '../handoffs.ts';
import type { Operation } from '../operation.ts';

const HANDOFFS_PATH = '/v1/applications/{appId}/handoffs';
const COMMON = { tag: 'Hand-offs', mount: 'native' } as const;
const READ_SCOPES = [
  'handoffs:write',
  'browsers:read',
  'applications:read',
  'applications:write',
  'keys:write',
] as const;
const BROWSER_COOKIE_HEADER = {
  'set-cookie':
    'If the credential is the secret of a claim link: a cookie that binds the link to this browser, the first that opened it.',
} as const;
const HANDOFF_RESPONSES = { 200: { description: 'The hand-off.', schema: Handoff } } as const;

export const HANDOFF_OPERATIONS = {
  requestHandoff: {
    ...COMMON,
    method: 'POST',
    path: HANDOFFS_PATH,
    summary: 'Request a hand-off',
    description:
      'Requests that a person take control of a running session: a member, whoever has a link, or an end user of the application. While the person has control, input from the agent waits; it continues afterwards on the same connection. A session can have only one open hand-off, and a viewer in control counts as one. Available to agent keys, and to members with the role developer.',
    credential: 'agentKeyOrAccount',
    scopes: ['handoffs:write'],
    isWrite: true,
    unknownFields: 'refuse',
    secretFields: ['claimUrl'],
    params: ApplicationParams,
    body: RequestHandoff,
    bodyExample: {
      sessionId: '3f0c8f5e-0000-7000-8000-000000000000',
      instructions: 'Enter the code from your bank app.',
      reason: 'otp',
      ttlSeconds: 600,
    },
    responses: { 201: { description: 'The hand-off.', schema: Handoff } },
    errors: ['not_found', 'session_not_running', 'handoff_exists', 'limit_reached'],
  },
  listHandoffs: {
    ...COMMON,
    method: 'GET',
    path: HANDOFFS_PATH,
    summary: 'List hand-offs',
    description:
      'Returns hand-offs, newest first. An agent key gets the hand-offs of the sessions that it created; a member gets those of the whole application.',
    credential: 'agentKeyOrAccount',
    scopes: READ_SCOPES,
    isWrite: false,
    params: ApplicationParams,
    query: HandoffsQuery,
    responses: { 200: { description: 'A page of hand-offs.', schema: HandoffPage } },
    errors: ['not_found'],
  },
  readHandoff: {
    ...COMMON,
    method: 'GET',
    path: `${HANDOFFS_PATH}/{id}`,
    summary: 'Read a hand-off',
    description:
      'Returns one hand-off. With `wait`, the response is sent when the status has changed or the waiting time is over. The lease token and the secret of the claim link are also accepted.',
    credential: 'handoffReader',
    scopes: READ_SCOPES,
    isWrite: false,
    params: HandoffParams,
    query: HandoffQuery,
    responses: { 200: { description: 'The hand-off.', schema: Handoff, headers: BROWSER_COOKIE_HEADER } },
    errors: ['not_found', 'already_claimed'],
  },
  claimHandoff: {
    ...COMMON,
    method: 'POST',
    path: `${HANDOFFS_PATH}/{id}/claim`,
    summary: 'Claim a hand-off',
    description:
      'Gives the caller control of the session. Available to signed-in people with the role developer, and to anyone who has the secret of the claim link. Only one of several concurrent requests gets control. For a payment, a signed-in person must have proved their identity recently.',
    credential: 'handoffClaimer',
    isWrite: true,
    params: HandoffParams,
    responses: { 200: { description: 'The lease.', schema: ClaimedHandoff, headers: BROWSER_COOKIE_HEADER } },
    errors: [
      'not_found',
      'permission_denied',
      'insufficient_user_authentication',
      'handoff_claimed',
      'already_claimed',
      'already_decided',
      'session_not_running',
    ],
  },
  renewHandoff: {
    ...COMMON,
    method: 'POST',
    path: `${HANDOFFS_PATH}/{id}/renew`,
    summary: 'Renew a lease',
    description: 'Renews the lease for its full length, counted from now.',
    credential: 'handoffLease',
    isWrite: true,
    params: HandoffParams,
    responses: HANDOFF_RESPONSES,
    errors: ['not_found', 'session_not_running', 'stale_fence'],
  },
  completeHandoff: {
    ...COMMON,
    method: 'POST',
    path: `${HANDOFFS_PATH}/{id}/complete`,
    summary: 'Complete a hand-off',
    description:
      'Ends the control of the person, and lets the input of the agent continue. Only the person in control can do this, not the agent.',
    credential: 'handoffLease',
    isWrite: true,
    unknownFields: 'refuse',
    params: HandoffParams,
    body: CompleteHandoff,
    bodyExample: { outcome: 'completed', note: 'Signed in.' },
    responses: HANDOFF_RESPONSES,
    errors: ['not_found', 'session_not_running', 'stale_fence'],
  },
  cancelHandoff: {
    ...COMMON,
    method: 'POST',
    path: `${HANDOFFS_PATH}/{id}/cancel`,
    summary: 'Cancel a hand-off',
    description:
      'Cancels a hand-off that has not ended. Available to whoever requested it, and to members with the role admin. With the lease token, control is given back instead, and the hand-off waits for another person.',
    credential: 'handoffReader',
    scopes: ['handoffs:write'],
    isWrite: true,
    params: HandoffParams,
    responses: HANDOFF_RESPONSES,
    errors: ['not_found', 'permission_denied', 'already_decided', 'session_not_running', 'stale_fence'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
