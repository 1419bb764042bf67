// E-mails to people. The operator can read them through the API if there is no mail server, or if an e-mail did not
// arrive.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const MAILS_LISTED_MAX = 100;

export const Mail = Type.Object(
  {
    id: Uuid('Id of the e-mail.'),
    to: Type.String({ description: 'E-mail address of the recipient.' }),
    subject: Type.String({ description: 'Subject.' }),
    text: Type.String({
      description:
        'Text. It may contain a code or a link that signs the recipient in. Empty once the e-mail has been sent.',
    }),
    createdAt: Time('When the e-mail was written.'),
    sentAt: Type.Optional(Time('When the mail server accepted the e-mail.')),
    nextAttemptAt: Type.Optional(
      Time('When the next attempt to send the e-mail is made. Absent if no attempt is planned.'),
    ),
    failure: Type.Optional(Type.String({ description: 'Why the last attempt failed.' })),
  },
  { description: 'An e-mail to a person. E-mails are kept for 31 days.' },
);
export type Mail = Static<typeof Mail>;

export const MailList = Type.Object({
  hasMailServer: Type.Boolean({ description: 'Whether the operator has configured a mail server.' }),
  data: Type.Array(Mail, { description: `The newest ${MAILS_LISTED_MAX}, newest first.` }),
});
export type MailList = Static<typeof MailList>;
