// HTTP handler for the usage of an application.
import type { Usage } from '../../domain/usage/usage.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export const usageHandlers = (usage: Pick<Usage, 'read'>) => ({
  readApplicationUsage: async ({ caller, params, query }: In<'readApplicationUsage'>): Promise<Answer> =>
    answer(await usage.read(caller, params.appId, query)),
});
