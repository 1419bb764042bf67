// HTTP handlers for limits.
import type { Limits } from '../../domain/limits/limits.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, responseWithETag } from './http-response.ts';

export const limitHandlers = (limits: Pick<Limits, 'read' | 'replace'>) => ({
  readLimits: async ({ caller, params }: HandlerInput<'readLimits'>): Promise<HttpResponse> =>
    responseWithETag(await limits.read(caller, params.appId)),

  replaceLimits: async ({ caller, params, headers, body }: HandlerInput<'replaceLimits'>): Promise<HttpResponse> =>
    responseWithETag(await limits.replace(caller, params.appId, headers['if-match'], body)),
});
