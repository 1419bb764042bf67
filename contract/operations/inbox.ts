// The inbox of a person, and the notification settings.
import { ChangeNotifications, Inbox, InboxQuery, Notifications } from '../inbox.ts';
import type { Operation } from '../operation.ts';

const ACCOUNT = { tag: 'Account', credential: 'human', mount: 'native' } as const;
const NOTIFICATIONS_RESPONSES = { 200: { description: 'The settings.', schema: Notifications } } as const;

export const INBOX_OPERATIONS = {
  readInbox: {
    ...ACCOUNT,
    method: 'GET',
    path: '/v1/account/inbox',
    summary: 'Read what is waiting for you',
    description:
      'Counts the Actions that the person may decide and the hand-offs that they may claim, by application. With `wait`, responds as soon as the counts change.',
    isWrite: false,
    query: InboxQuery,
    responses: { 200: { description: 'What is waiting.', schema: Inbox } },
    errors: [],
  },
  readNotifications: {
    ...ACCOUNT,
    method: 'GET',
    path: '/v1/account/notifications',
    summary: 'Read the notification settings',
    description: 'Returns whether the person gets e-mails when something is waiting for them.',
    isWrite: false,
    responses: NOTIFICATIONS_RESPONSES,
    errors: [],
  },
  changeNotifications: {
    ...ACCOUNT,
    method: 'PATCH',
    path: '/v1/account/notifications',
    summary: 'Change the notification settings',
    description: 'Turns e-mails on or off, for all applications or for some of them.',
    isWrite: true,
    unknownFields: 'refuse',
    body: ChangeNotifications,
    bodyExample: { mails: true, mutedApplications: [] },
    responses: NOTIFICATIONS_RESPONSES,
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
