// Invitations to applications.
import { ApplicationParams } from '../applications.ts';
import { PageQuery } from '../common.ts';
import {
  AcceptedInvitation,
  AcceptInvitation,
  CreateInvitation,
  InvitationPage,
  InvitationParams,
  IssuedInvitation,
} from '../invitations.ts';
import type { Operation } from '../operation.ts';

export const INVITATION_OPERATIONS = {
  createInvitation: {
    tag: 'Members',
    method: 'POST',
    path: '/v1/applications/{appId}/invitations',
    summary: 'Invite a person',
    description:
      'Sends the link by e-mail if the operator has configured a mail server, and returns the link once. Requires the role admin; a new owner can be invited only by an owner who is signed in, with a step-up. At most 50 pending invitations, and 20 new ones per hour.',
    credential: 'account',
    scopes: ['members:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    body: CreateInvitation,
    bodyExample: { email: 'grace@example.com', role: 'developer' },
    secretFields: ['acceptUrl'],
    responses: { 201: { description: 'The invitation, with its link.', schema: IssuedInvitation } },
    errors: ['not_found', 'limit_reached', 'rate_limited', 'insufficient_user_authentication'],
  },
  listInvitations: {
    tag: 'Members',
    method: 'GET',
    path: '/v1/applications/{appId}/invitations',
    summary: 'List invitations',
    description: 'Returns invitations without their secrets, newest first. Requires the role admin.',
    credential: 'account',
    scopes: ['members:write'],
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of invitations.', schema: InvitationPage } },
    errors: ['not_found'],
  },
  revokeInvitation: {
    tag: 'Members',
    method: 'DELETE',
    path: '/v1/applications/{appId}/invitations/{invitationId}',
    summary: 'Revoke an invitation',
    description: 'The invitation can no longer be accepted. Requires the role admin.',
    credential: 'account',
    scopes: ['members:write'],
    isWrite: true,
    mount: 'native',
    params: InvitationParams,
    responses: { 204: { description: 'The invitation was revoked.' } },
    errors: ['not_found'],
  },
  acceptInvitation: {
    tag: 'Members',
    method: 'POST',
    path: '/v1/invitations/accept',
    summary: 'Accept an invitation',
    description:
      'Accepts the invitation, once, for the account whose verified e-mail address was invited. For anyone else the invitation does not exist.',
    credential: 'human',
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: AcceptInvitation,
    bodyExample: { token: 'biv_…' },
    responses: { 200: { description: 'The result of accepting the invitation.', schema: AcceptedInvitation } },
    errors: ['not_found', 'rate_limited'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
