// HTTP handlers for buying credit, and for the catalog.
import { CATALOG } from '../../domain/topups/catalog.ts';
import type { TopUps } from '../../domain/topups/topups.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { cached } from './config.ts';

export type TopUpVerbs = Pick<TopUps, 'quote' | 'open' | 'list' | 'read' | 'cancel' | 'replaceAuto'>;

export const topUpHandlers = (topUps: TopUpVerbs) => ({
  readQuote: async ({ caller, params }: In<'readQuote'>): Promise<Answer> =>
    answer(await topUps.quote(caller, params.appId)),

  openCheckout: async ({ caller, body, options }: In<'openCheckout'>): Promise<Answer> =>
    answer(await topUps.open(caller, body, options.run !== undefined)),

  listCheckouts: async ({ caller, query }: In<'listCheckouts'>): Promise<Answer> =>
    answer(await topUps.list(caller, query)),

  readCheckout: async ({ caller, params, query, signal }: In<'readCheckout'>): Promise<Answer> =>
    answer(await topUps.read(caller, params.id, query, signal)),

  cancelCheckout: async ({ caller, params }: In<'cancelCheckout'>): Promise<Answer> =>
    answer(await topUps.cancel(caller, params.id)),

  replaceAutoTopUp: async ({ caller, body }: In<'replaceAutoTopUp'>): Promise<Answer> =>
    answer(await topUps.replaceAuto(caller, body)),

  readCatalog: async ({ headers }: In<'readCatalog'>): Promise<Answer> => cached(CATALOG, headers['if-none-match']),
});
