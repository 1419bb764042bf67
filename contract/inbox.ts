// What waits for a person: Actions that they may decide, and hand-offs that they may claim, in all their applications.
import { type Static, Type } from 'typebox';
import { Uuid } from './common.ts';

export const INBOX_WAIT_SECONDS_MAX = 55;
const MUTED_MAX = 100;

export const Inbox = Type.Object(
  {
    state: Type.String({ description: 'Changes when something else waits. Send it as `since` to wait for that.' }),
    applications: Type.Array(
      Type.Object({
        applicationId: Uuid('Id of the application.'),
        applicationName: Type.String({ description: 'Its name.' }),
        approvals: Type.Integer({ description: 'Number of Actions that you may decide.' }),
        handoffs: Type.Integer({ description: 'Number of hand-offs that you may claim.' }),
      }),
      { description: 'The applications in which something waits for you, by name.' },
    ),
  },
  { description: 'What waits for the person.' },
);
export type Inbox = Static<typeof Inbox>;

export const InboxQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: INBOX_WAIT_SECONDS_MAX,
      default: 0,
      description: 'Seconds to wait for another state.',
    }),
  ),
  since: Type.Optional(
    Type.String({ maxLength: 64, description: 'With `wait`: the state that is known. Default: that of now.' }),
  ),
});
export type InboxQuery = Static<typeof InboxQuery>;

export const Notifications = Type.Object(
  {
    mails: Type.Boolean({ description: 'Whether you get a mail when something waits for you.' }),
    mutedApplications: Type.Array(Uuid('Id of an application.'), {
      description: 'Applications about which you get none.',
    }),
    email: Type.Optional(
      Type.String({ description: 'Where mails go to. Absent: your address is not verified, and you get none.' }),
    ),
  },
  { description: 'How a person is told that something waits for them.' },
);
export type Notifications = Static<typeof Notifications>;

export const ChangeNotifications = Type.Object(
  {
    mails: Type.Optional(Type.Boolean({ description: 'False: no mails.' })),
    mutedApplications: Type.Optional(
      Type.Array(Uuid('Id of an application that you are a member of.'), {
        maxItems: MUTED_MAX,
        uniqueItems: true,
        description: 'Replaces the list.',
      }),
    ),
  },
  { additionalProperties: false, minProperties: 1 },
);
export type ChangeNotifications = Static<typeof ChangeNotifications>;
