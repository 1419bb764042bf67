// HTTP handlers for the inbox of a person.
import type { Inbox } from '../../domain/inbox/inbox.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type InboxVerbs = Pick<Inbox, 'read' | 'readNotifications' | 'changeNotifications'>;

export const inboxHandlers = (inbox: InboxVerbs) => ({
  readInbox: async ({ caller, query, signal }: In<'readInbox'>): Promise<Answer> =>
    answer(await inbox.read(caller, query, signal)),

  readNotifications: async ({ caller }: In<'readNotifications'>): Promise<Answer> =>
    answer(await inbox.readNotifications(caller)),

  changeNotifications: async ({ caller, body }: In<'changeNotifications'>): Promise<Answer> =>
    answer(await inbox.changeNotifications(caller, body)),
});
