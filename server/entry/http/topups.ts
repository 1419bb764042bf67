// HTTP handlers for buying credit, and for the catalog.
import { CATALOG } from '../../domain/topups/catalog.ts';
import type { TopUps } from '../../domain/topups/topups.ts';
import type { HandlerInput } from './bind.ts';
import { cacheableResponse } from './config.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type TopUpMethods = Pick<TopUps, 'quote' | 'open' | 'list' | 'read' | 'cancel' | 'replaceAutoTopUp'>;

export const topUpHandlers = (topUps: TopUpMethods) => ({
  readQuote: async ({ caller, params }: HandlerInput<'readQuote'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.quote(caller, params.appId)),

  openCheckout: async ({ caller, body, options }: HandlerInput<'openCheckout'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.open(caller, body, options.run !== undefined)),

  listCheckouts: async ({ caller, query }: HandlerInput<'listCheckouts'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.list(caller, query)),

  readCheckout: async ({ caller, params, query, signal }: HandlerInput<'readCheckout'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.read(caller, params.id, query, signal)),

  cancelCheckout: async ({ caller, params }: HandlerInput<'cancelCheckout'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.cancel(caller, params.id)),

  replaceAutoTopUp: async ({ caller, body }: HandlerInput<'replaceAutoTopUp'>): Promise<HttpResponse> =>
    jsonResponse(await topUps.replaceAutoTopUp(caller, body)),

  readCatalog: async ({ headers }: HandlerInput<'readCatalog'>): Promise<HttpResponse> =>
    cacheableResponse(CATALOG, headers['if-none-match']),
});
