// Applications, to which keys, sessions and usage belong. In the browser routes, an application is called a project.
import { type Static, Type } from 'typebox';
import { Page, Time, Uuid } from './common.ts';
import { ROLES } from './roles.ts';

export const APPLICATIONS_PER_ACCOUNT_MAX = 50;
export const NAME_CHARACTERS_MAX = 64;

/** A display name: trimmed by the service, not empty, without control characters. */
export const Name = (description: string) =>
  Type.String({
    description: `${description} 1–${NAME_CHARACTERS_MAX} characters after trimming, without control characters.`,
  });

export const Application = Type.Object(
  {
    id: Uuid('Id of the application. It is the `projectId` of its sessions.'),
    name: Type.String(),
    slug: Type.String({ description: 'Unique name in this installation. Cannot be changed.' }),
    role: Type.Enum([...ROLES], { description: 'Role of the calling account in the application.' }),
    billingAccountId: Type.String({ description: 'Id of the account that is billed.' }),
    environment: Type.Enum(['development', 'production']),
    revision: Type.Integer({ description: 'Increases with every change. The `ETag` is this number in double quotes.' }),
    createdAt: Time('When the application was created.'),
    updatedAt: Time('When the application last changed.'),
  },
  { description: 'An application, to which keys, sessions and usage belong.' },
);
export type Application = Static<typeof Application>;

export const CreateApplication = Type.Object({
  name: Name('Display name. Need not be unique.'),
  slug: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{3,40}$',
      description:
        '3–40 characters from a–z, 0–9 and `-`. Must be unique in this installation. Derived from the name by default.',
    }),
  ),
});
export type CreateApplication = Static<typeof CreateApplication>;

export const RenameApplication = Type.Object({ name: Name('New display name.') });
export type RenameApplication = Static<typeof RenameApplication>;

export const ApplicationPage = Page(Application);
export type ApplicationPage = Static<typeof ApplicationPage>;

export const ApplicationParams = Type.Object({ appId: Uuid('Id of the application.') });
