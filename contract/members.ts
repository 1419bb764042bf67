// Members: the accounts that have a role in an application.
import { type Static, Type } from 'typebox';
import { Page, Time, Uuid } from './common.ts';
import { ROLES } from './roles.ts';

export const Member = Type.Object(
  {
    accountId: Uuid('Id of the account.'),
    name: Type.String({ description: 'Name of the account.' }),
    email: Type.Optional(
      Type.String({ description: 'E-mail address of the account, if it has one. Only for admins and owners.' }),
    ),
    role: Type.Enum([...ROLES], { description: 'Role in the application.' }),
    joinedAt: Time('When the account became a member.'),
    lastActiveAt: Type.Optional(Time('When a sign-in or token of the account was last used, to the minute.')),
  },
  { description: 'An account with a role in an application.' },
);
export type Member = Static<typeof Member>;

export const ChangeMember = Type.Object({ role: Type.Enum([...ROLES], { description: 'New role.' }) });
export type ChangeMember = Static<typeof ChangeMember>;

export const MemberPage = Page(Member);
export type MemberPage = Static<typeof MemberPage>;

export const MemberParams = Type.Object({
  appId: Uuid('Id of the application.'),
  accountId: Uuid('Id of the account.'),
});
