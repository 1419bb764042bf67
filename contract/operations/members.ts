// Members of applications.
import { ApplicationParams } from '../applications.ts';
import { PageQuery } from '../common.ts';
import { ChangeMember, Member, MemberPage, MemberParams } from '../members.ts';
import type { Operation } from '../operation.ts';
import { READ_APPLICATIONS_SCOPES } from './shared.ts';

export const MEMBER_OPERATIONS = {
  listMembers: {
    tag: 'Members',
    method: 'GET',
    path: '/v1/applications/{appId}/members',
    summary: 'List members',
    description: 'Returns the members of the application, newest first. Requires the role viewer.',
    credential: 'account',
    scopes: [...READ_APPLICATIONS_SCOPES, 'members:write'],
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of members.', schema: MemberPage } },
    errors: ['not_found'],
  },
  changeMember: {
    tag: 'Members',
    method: 'PATCH',
    path: '/v1/applications/{appId}/members/{accountId}',
    summary: 'Change the role of a member',
    description:
      'Takes effect at once. Requires the role admin; changing a role from or to owner requires the role owner and a step-up. An application always keeps at least one owner. Pending invitations to roles that the member may no longer give are revoked.',
    credential: 'human',
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: MemberParams,
    body: ChangeMember,
    bodyExample: { role: 'developer' },
    responses: { 200: { description: 'The member.', schema: Member } },
    errors: ['not_found', 'permission_denied', 'insufficient_user_authentication', 'last_owner'],
  },
  removeMember: {
    tag: 'Members',
    method: 'DELETE',
    path: '/v1/applications/{appId}/members/{accountId}',
    summary: 'Remove a member, or leave',
    description:
      'Takes effect at once, including for tokens of the account. Requires the role admin; removing an owner requires the role owner and a step-up. Every member may leave, except the last owner. Agent keys that the member issued stay valid. Pending invitations of the member are revoked.',
    credential: 'human',
    isWrite: true,
    mount: 'native',
    params: MemberParams,
    responses: { 204: { description: 'The member was removed.' } },
    errors: ['not_found', 'permission_denied', 'insufficient_user_authentication', 'last_owner'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
