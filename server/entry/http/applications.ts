// HTTP handlers for applications.
import type { IdentityServices } from '../../domain/identity/identity.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export const applicationHandlers = (applications: IdentityServices['applications']) => ({
  listApplications: async ({ caller, query }: HandlerInput<'listApplications'>): Promise<HttpResponse> =>
    jsonResponse(await applications.list(caller, query)),

  createApplication: async ({ caller, body }: HandlerInput<'createApplication'>): Promise<HttpResponse> =>
    responseWithETag(await applications.create(caller, body)),

  readApplication: async ({ caller, params }: HandlerInput<'readApplication'>): Promise<HttpResponse> =>
    responseWithETag(await applications.read(caller, params.appId)),

  renameApplication: async ({
    caller,
    params,
    headers,
    body,
  }: HandlerInput<'renameApplication'>): Promise<HttpResponse> =>
    responseWithETag(await applications.rename(caller, params.appId, headers['if-match'], body)),
});
