// What waits for a person, and how they are told.
import { ChangeNotifications, Inbox, InboxQuery, Notifications } from '../inbox.ts';
import type { Operation } from '../operation.ts';

const ACCOUNT = { tag: 'Account', credential: 'human', mount: 'native' } as const;
const NOTIFICATIONS = { 200: { description: 'The settings.', schema: Notifications } } as const;

export const INBOX_OPERATIONS = {
  readInbox: {
    ...ACCOUNT,
    method: 'GET',
    path: '/v1/account/inbox',
    summary: 'Read what waits for you',
    description:
      'Counts the Actions that the person may decide and the hand-offs that they may claim, by application. With `wait`, as soon as that has changed.',
    isWrite: false,
    query: InboxQuery,
    responses: { 200: { description: 'What waits.', schema: Inbox } },
    errors: [],
  },
  readNotifications: {
    ...ACCOUNT,
    method: 'GET',
    path: '/v1/account/notifications',
    summary: 'Read the settings of notifications',
    description: 'Returns whether the person gets mails when something waits for them.',
    isWrite: false,
    responses: NOTIFICATIONS,
    errors: [],
  },
  changeNotifications: {
    ...ACCOUNT,
    method: 'PATCH',
    path: '/v1/account/notifications',
    summary: 'Change the settings of notifications',
    description: 'Turns mails on or off, for all applications or for some.',
    isWrite: true,
    unknownFields: 'refuse',
    body: ChangeNotifications,
    bodyExample: { mails: true, mutedApplications: [] },
    responses: NOTIFICATIONS,
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
