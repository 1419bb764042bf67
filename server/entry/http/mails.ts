// HTTP handlers for the operator's outbox.
import type { Outbox } from '../../domain/mail/outbox.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type OutboxVerbs = Pick<Outbox, 'list'>;

export const mailHandlers = (outbox: OutboxVerbs) => ({
  listMails: async ({ caller }: In<'listMails'>): Promise<Answer> => ({
    ...answer(await outbox.list(caller)),
    headers: { 'cache-control': 'no-store' },
  }),
});
