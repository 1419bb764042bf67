// What is waiting for a person: Actions that the person may decide and hand-offs that the person may claim, in every
// application of which the person is a member.
import { type Static, Type } from 'typebox';
import { Uuid } from './common.ts';

export const INBOX_WAIT_SECONDS_MAX = 55;
const MUTED_APPLICATIONS_MAX = 100;

export const Inbox = Type.Object(
  {
    state: Type.String({
      description: 'Changes when the list of waiting items changes. Send it as `since` to wait for the next change.',
    }),
    applications: Type.Array(
      Type.Object({
        applicationId: Uuid('Id of the application.'),
        applicationName: Type.String({ description: 'Name of the application.' }),
        approvals: Type.Integer({ description: 'Number of Actions that you may decide.' }),
        handoffs: Type.Integer({ description: 'Number of hand-offs that you may claim.' }),
      }),
      { description: 'The applications in which something is waiting for you, ordered by name.' },
    ),
  },
  { description: 'What is waiting for the person.' },
);
export type Inbox = Static<typeof Inbox>;

export const InboxQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: INBOX_WAIT_SECONDS_MAX,
      default: 0,
      description: 'Seconds to wait for `state` to change.',
    }),
  ),
  since: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'With `wait`, the `state` that you last read. Defaults to the current one.',
    }),
  ),
});
export type InboxQuery = Static<typeof InboxQuery>;

export const Notifications = Type.Object(
  {
    mails: Type.Boolean({ description: 'Whether you get an e-mail when something is waiting for you.' }),
    mutedApplications: Type.Array(Uuid('Id of an application.'), {
      description: 'Applications about which you get no e-mails.',
    }),
    email: Type.Optional(
      Type.String({
        description:
          'Address to which e-mails are sent. If absent, your address is not verified and you get no e-mails.',
      }),
    ),
  },
  { description: 'How a person is notified that something is waiting for them.' },
);
export type Notifications = Static<typeof Notifications>;

export const ChangeNotifications = Type.Object(
  {
    mails: Type.Optional(Type.Boolean({ description: 'If false, no e-mails are sent.' })),
    mutedApplications: Type.Optional(
      Type.Array(Uuid('Id of an application that you are a member of.'), {
        maxItems: MUTED_APPLICATIONS_MAX,
        uniqueItems: true,
        description: 'The new list, which replaces the current one.',
      }),
    ),
  },
  { additionalProperties: false, minProperties: 1 },
);
export type ChangeNotifications = Static<typeof ChangeNotifications>;
