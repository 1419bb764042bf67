// HTTP handler for the usage of an application.
import type { Usage } from '../../domain/usage/usage.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export const usageHandlers = (usage: Pick<Usage, 'read'>) => ({
  readApplicationUsage: async ({
    caller,
    params,
    query,
  }: HandlerInput<'readApplicationUsage'>): Promise<HttpResponse> =>
    jsonResponse(await usage.read(caller, params.appId, query)),
});
