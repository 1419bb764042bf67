// HTTP handlers for the inbox of a person.
import type { Inbox } from '../../domain/inbox/inbox.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type InboxMethods = Pick<Inbox, 'read' | 'readNotifications' | 'changeNotifications'>;

export const inboxHandlers = (inbox: InboxMethods) => ({
  readInbox: async ({ caller, query, signal }: HandlerInput<'readInbox'>): Promise<HttpResponse> =>
    jsonResponse(await inbox.read(caller, query, signal)),

  readNotifications: async ({ caller }: HandlerInput<'readNotifications'>): Promise<HttpResponse> =>
    jsonResponse(await inbox.readNotifications(caller)),

  changeNotifications: async ({ caller, body }: HandlerInput<'changeNotifications'>): Promise<HttpResponse> =>
    jsonResponse(await inbox.changeNotifications(caller, body)),
});
