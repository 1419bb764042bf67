// HTTP handlers for personal access tokens.
import type { IdentityVerbs } from '../../domain/identity/identity.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';

export const tokenHandlers = (tokens: IdentityVerbs['tokens']) => ({
  listTokens: async ({ caller, query }: In<'listTokens'>): Promise<Answer> => answer(await tokens.list(caller, query)),

  createToken: async ({ caller, body }: In<'createToken'>): Promise<Answer> =>
    answer(await tokens.create(caller, body)),

  readCurrentToken: async ({ caller }: In<'readCurrentToken'>): Promise<Answer> => answer(await tokens.current(caller)),

  revokeSentToken: async ({ body, source }: In<'revokeSentToken'>): Promise<Answer> => {
    await tokens.revokeSent(body.token, source);
    return nothing();
  },

  revokeToken: async ({ caller, params }: In<'revokeToken'>): Promise<Answer> => {
    await tokens.revoke(caller, params.id);
    return nothing();
  },
});
