// Outgoing e-mails, which the operator can read.
import { MailList } from '../mails.ts';
import type { Operation } from '../operation.ts';

export const MAIL_OPERATIONS = {
  listMails: {
    tag: 'Account',
    method: 'GET',
    path: '/v1/operator/mails',
    summary: 'List e-mails to people',
    description:
      'Returns the newest e-mails. Their text is included until they are sent, so that without a mail server the operator can pass it on. Codes and links in them sign people in. Only for the account that was set up at the first start, signed in and after a recent proof of identity; tokens are refused.',
    credential: 'human',
    stepUp: true,
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The e-mails.', schema: MailList } },
    errors: ['permission_denied'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
