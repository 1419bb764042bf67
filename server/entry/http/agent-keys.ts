// HTTP handlers for agent keys.
import type { IdentityServices } from '../../domain/identity/identity.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export const agentKeyHandlers = (keys: IdentityServices['agentKeys']) => ({
  listAgentKeys: async ({ caller, params, query }: HandlerInput<'listAgentKeys'>): Promise<HttpResponse> =>
    jsonResponse(await keys.list(caller, params.appId, query)),

  createAgentKey: async ({ caller, params, body }: HandlerInput<'createAgentKey'>): Promise<HttpResponse> =>
    responseWithETag(await keys.create(caller, params.appId, body)),

  readAgentKey: async ({ caller, params }: HandlerInput<'readAgentKey'>): Promise<HttpResponse> =>
    responseWithETag(await keys.read(caller, params.appId, params.keyId)),

  changeAgentKey: async ({ caller, params, headers, body }: HandlerInput<'changeAgentKey'>): Promise<HttpResponse> =>
    responseWithETag(await keys.change(caller, params.appId, params.keyId, headers['if-match'], body)),

  revokeAgentKey: async ({ caller, params, query }: HandlerInput<'revokeAgentKey'>): Promise<HttpResponse> => {
    await keys.revoke(caller, params.appId, params.keyId, query);
    return emptyResponse();
  },

  rotateAgentKey: async ({ caller, params, body }: HandlerInput<'rotateAgentKey'>): Promise<HttpResponse> =>
    responseWithETag(await keys.rotate(caller, params.appId, params.keyId, body)),
});
