// HTTP handlers for the operator's outbox.
import type { Outbox } from '../../domain/mail/outbox.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type OutboxMethods = Pick<Outbox, 'list'>;

export const mailHandlers = (outbox: OutboxMethods) => ({
  listMails: async ({ caller }: HandlerInput<'listMails'>): Promise<HttpResponse> => ({
    ...jsonResponse(await outbox.list(caller)),
    headers: { 'cache-control': 'no-store' },
  }),
});
