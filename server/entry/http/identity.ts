// HTTP handlers for the settings that determine how the consumers of an application sign in.
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export const identityHandlers = ({ identities, providers }: Pick<ConsumerServices, 'identities' | 'providers'>) => ({
  readIdentity: async ({ caller, params }: HandlerInput<'readIdentity'>): Promise<HttpResponse> =>
    responseWithETag(await identities.read(caller, params.appId)),

  replaceIdentity: async ({ caller, params, headers, body }: HandlerInput<'replaceIdentity'>): Promise<HttpResponse> =>
    responseWithETag(await identities.replace(caller, params.appId, headers['if-match'], body)),

  listConsumerProviders: async ({ caller, params }: HandlerInput<'listConsumerProviders'>): Promise<HttpResponse> =>
    jsonResponse(await providers.list(caller, params.appId)),

  readConsumerProvider: async ({ caller, params }: HandlerInput<'readConsumerProvider'>): Promise<HttpResponse> =>
    responseWithETag(await providers.read(caller, params.appId, params.providerId)),

  writeConsumerProvider: async ({
    caller,
    params,
    headers,
    body,
  }: HandlerInput<'writeConsumerProvider'>): Promise<HttpResponse> => {
    const { appId, providerId } = params;
    const { provider, isNew } = await providers.write(caller, appId, providerId, headers['if-match'], body);
    return { ...responseWithETag(provider), status: isNew ? 201 : 200 };
  },

  removeConsumerProvider: async ({
    caller,
    params,
    headers,
  }: HandlerInput<'removeConsumerProvider'>): Promise<HttpResponse> => {
    await providers.remove(caller, params.appId, params.providerId, headers['if-match']);
    return emptyResponse();
  },
});
