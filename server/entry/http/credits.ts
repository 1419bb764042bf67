// HTTP handlers for credit.
import type { Credits } from '../../domain/credits/credits.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type CreditMethods = Pick<Credits, 'read' | 'entries' | 'usage'>;

export const creditHandlers = (credits: CreditMethods) => ({
  readCredits: async ({ caller, params }: HandlerInput<'readCredits'>): Promise<HttpResponse> =>
    jsonResponse(await credits.read(caller, params.appId)),

  listCreditEntries: async ({ caller, params, query }: HandlerInput<'listCreditEntries'>): Promise<HttpResponse> =>
    jsonResponse(await credits.entries(caller, params.appId, query)),

  readCreditUsage: async ({ caller, params, query }: HandlerInput<'readCreditUsage'>): Promise<HttpResponse> =>
    jsonResponse(await credits.usage(caller, params.appId, query)),
});
