// HTTP handlers for members and invitations.
import type { Invitations } from '../../domain/members/invitations.ts';
import type { Members } from '../../domain/members/members.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export interface MemberMethods {
  readonly members: Pick<Members, 'list' | 'change' | 'remove'>;
  readonly invitations: Pick<Invitations, 'create' | 'list' | 'revoke' | 'accept'>;
}

export const memberHandlers = ({ members, invitations }: MemberMethods) => ({
  listMembers: async ({ caller, params, query }: HandlerInput<'listMembers'>): Promise<HttpResponse> =>
    jsonResponse(await members.list(caller, params.appId, query)),

  changeMember: async ({ caller, params, body }: HandlerInput<'changeMember'>): Promise<HttpResponse> =>
    jsonResponse(await members.change(caller, params.appId, params.accountId, body)),

  removeMember: async ({ caller, params }: HandlerInput<'removeMember'>): Promise<HttpResponse> => {
    await members.remove(caller, params.appId, params.accountId);
    return emptyResponse();
  },

  createInvitation: async ({ caller, params, body }: HandlerInput<'createInvitation'>): Promise<HttpResponse> =>
    jsonResponse(await invitations.create(caller, params.appId, body)),

  listInvitations: async ({ caller, params, query }: HandlerInput<'listInvitations'>): Promise<HttpResponse> =>
    jsonResponse(await invitations.list(caller, params.appId, query)),

  revokeInvitation: async ({ caller, params }: HandlerInput<'revokeInvitation'>): Promise<HttpResponse> => {
    await invitations.revoke(caller, params.appId, params.invitationId);
    return emptyResponse();
  },

  acceptInvitation: async ({ caller, body }: HandlerInput<'acceptInvitation'>): Promise<HttpResponse> =>
    jsonResponse(await invitations.accept(caller, body)),
});
