// HTTP handlers for members and invitations.
import type { Invitations } from '../../domain/members/invitations.ts';
import type { Members } from '../../domain/members/members.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';

export interface MemberVerbs {
  readonly members: Pick<Members, 'list' | 'change' | 'remove'>;
  readonly invitations: Pick<Invitations, 'create' | 'list' | 'revoke' | 'accept'>;
}

export const memberHandlers = ({ members, invitations }: MemberVerbs) => ({
  listMembers: async ({ caller, params, query }: In<'listMembers'>): Promise<Answer> =>
    answer(await members.list(caller, params.appId, query)),

  changeMember: async ({ caller, params, body }: In<'changeMember'>): Promise<Answer> =>
    answer(await members.change(caller, params.appId, params.accountId, body)),

  removeMember: async ({ caller, params }: In<'removeMember'>): Promise<Answer> => {
    await members.remove(caller, params.appId, params.accountId);
    return nothing();
  },

  createInvitation: async ({ caller, params, body }: In<'createInvitation'>): Promise<Answer> =>
    answer(await invitations.create(caller, params.appId, body)),

  listInvitations: async ({ caller, params, query }: In<'listInvitations'>): Promise<Answer> =>
    answer(await invitations.list(caller, params.appId, query)),

  revokeInvitation: async ({ caller, params }: In<'revokeInvitation'>): Promise<Answer> => {
    await invitations.revoke(caller, params.appId, params.invitationId);
    return nothing();
  },

  acceptInvitation: async ({ caller, body }: In<'acceptInvitation'>): Promise<Answer> =>
    answer(await invitations.accept(caller, body)),
});
