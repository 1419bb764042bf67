// HTTP handlers for personal access tokens.
import type { IdentityServices } from '../../domain/identity/identity.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export const tokenHandlers = (tokens: IdentityServices['tokens']) => ({
  listTokens: async ({ caller, query }: HandlerInput<'listTokens'>): Promise<HttpResponse> =>
    jsonResponse(await tokens.list(caller, query)),

  createToken: async ({ caller, body }: HandlerInput<'createToken'>): Promise<HttpResponse> =>
    jsonResponse(await tokens.create(caller, body)),

  readCurrentToken: async ({ caller }: HandlerInput<'readCurrentToken'>): Promise<HttpResponse> =>
    jsonResponse(await tokens.current(caller)),

  revokeSentToken: async ({ body, source }: HandlerInput<'revokeSentToken'>): Promise<HttpResponse> => {
    await tokens.revokeSent(body.token, source);
    return emptyResponse();
  },

  revokeToken: async ({ caller, params }: HandlerInput<'revokeToken'>): Promise<HttpResponse> => {
    await tokens.revoke(caller, params.id);
    return emptyResponse();
  },
});
