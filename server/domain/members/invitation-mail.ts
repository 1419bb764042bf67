// The text of an invitation e-mail, and the address at which to accept it. The secret is in the fragment, which
// browsers do not send to a server.
import type { InvitationRow } from '../../engines/store/rows/invitations.ts';
import type { Secret } from '../../kit/secret.ts';

export const acceptUrlOf = (publicUrl: string, secret: Secret): string =>
  `${publicUrl}/console/invitation#${secret.reveal()}`;

export interface InvitationMail {
  readonly row: InvitationRow;
  readonly acceptUrl: string;
  /** Name of the application. */
  readonly application: string;
  /** Name of the account that sends the invitation. */
  readonly inviter: string;
}

export const invitationMail = ({ row, acceptUrl, application, inviter }: InvitationMail) => ({
  to: row.email,
  subject: `Invitation to ${application}`,
  text: [
    `${inviter} invites you to the application "${application}" on Berth, as ${row.role}.`,
    `Accept the invitation here:\n${acceptUrl}`,
    `The link works once, until ${row.expiresAt.toISOString()}, for an account with the address ${row.email}.`,
    'If you did not expect this invitation, you can ignore this e-mail.\n',
  ].join('\n\n'),
});
