// Invitations to applications. An invitation can be accepted once, and makes the account with the invited e-mail
// address a member.
import { type Static, Type } from 'typebox';
import { Page, Time, Uuid } from './common.ts';
import { ROLES } from './roles.ts';
import { Email } from './sign-in.ts';

export const PENDING_INVITATIONS_MAX = 50;
export const INVITATIONS_PER_HOUR_MAX = 20;
export const INVITATION_LIFETIME_SECONDS_DEFAULT = 604_800;

export const INVITATION_STATUSES = ['pending', 'accepted', 'revoked', 'expired'] as const;

export const Invitation = Type.Object(
  {
    id: Uuid('Id of the invitation.'),
    email: Type.String({ description: 'E-mail address that was invited.' }),
    role: Type.Enum([...ROLES], { description: 'Role that the invited account gets.' }),
    status: Type.Enum([...INVITATION_STATUSES], {
      description:
        '`revoked`: by an admin, or because the inviter may no longer give the role. Invitations that have ended stay in lists for 90 days.',
    }),
    expiresAt: Time('When the invitation expires.'),
    endedAt: Type.Optional(Time('When the invitation was accepted or revoked, or expired. Absent while pending.')),
    invitedBy: Uuid('Id of the account that sent the invitation.'),
    createdAt: Time('When the invitation was created.'),
  },
  { description: 'An invitation to an application.' },
);
export type Invitation = Static<typeof Invitation>;

export const IssuedInvitation = Type.Object(
  {
    ...Invitation.properties,
    acceptUrl: Type.String({
      description:
        'The page that accepts the invitation. Its secret is stored only as a hash and cannot be shown again.',
    }),
  },
  { description: 'A new invitation.' },
);
export type IssuedInvitation = Static<typeof IssuedInvitation>;

export const CreateInvitation = Type.Object({
  email: Email('E-mail address of the person. Compared without regard to case.'),
  role: Type.Enum([...ROLES], {
    description: 'Role that the invited person gets. It cannot be higher than your own role.',
  }),
  expiresIn: Type.Optional(
    Type.Integer({
      minimum: 3600,
      maximum: 2_592_000,
      default: INVITATION_LIFETIME_SECONDS_DEFAULT,
      description: 'Seconds until the invitation expires.',
    }),
  ),
});
export type CreateInvitation = Static<typeof CreateInvitation>;

export const AcceptInvitation = Type.Object({
  token: Type.String({ minLength: 1, maxLength: 128, description: 'The part of `acceptUrl` after `#`.' }),
});
export type AcceptInvitation = Static<typeof AcceptInvitation>;

export const AcceptedInvitation = Type.Object(
  {
    applicationId: Uuid('Id of the application.'),
    role: Type.Enum([...ROLES], { description: 'Your role in the application. An existing role is never lowered.' }),
  },
  { description: 'The result of accepting an invitation.' },
);
export type AcceptedInvitation = Static<typeof AcceptedInvitation>;

export const InvitationPage = Page(Invitation);
export type InvitationPage = Static<typeof InvitationPage>;

export const InvitationParams = Type.Object({
  appId: Uuid('Id of the application.'),
  invitationId: Uuid('Id of the invitation.'),
});
