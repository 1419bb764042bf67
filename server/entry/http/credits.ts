// HTTP handlers for credit.
import type { Credits } from '../../domain/credits/credits.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type CreditVerbs = Pick<Credits, 'read' | 'entries' | 'usage'>;

export const creditHandlers = (credits: CreditVerbs) => ({
  readCredits: async ({ caller, params }: In<'readCredits'>): Promise<Answer> =>
    answer(await credits.read(caller, params.appId)),

  listCreditEntries: async ({ caller, params, query }: In<'listCreditEntries'>): Promise<Answer> =>
    answer(await credits.entries(caller, params.appId, query)),

  readCreditUsage: async ({ caller, params, query }: In<'readCreditUsage'>): Promise<Answer> =>
    answer(await credits.usage(caller, params.appId, query)),
});
