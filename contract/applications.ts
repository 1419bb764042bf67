// Applications: what owns keys, sessions and usage. An application is called a project by the browser family.
import { type Static, Type } from 'typebox';
import { Page, Time, Uuid } from './common.ts';

export const APPLICATIONS_PER_ACCOUNT_MAX = 50;
export const NAME_MAX_CHARACTERS = 64;

export const ROLES = ['viewer', 'developer', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/** A name for people: trimmed by us, not empty, without control characters. */
export const Name = (description: string) =>
  Type.String({
    description: `${description} 1–${NAME_MAX_CHARACTERS} characters after trimming, without control characters.`,
  });

export const Application = Type.Object(
  {
    id: Uuid('Also the `projectId` of its sessions.'),
    name: Type.String(),
    slug: Type.String({ description: 'Unique on this installation; never changes.' }),
    role: Type.Enum([...ROLES], { description: "The calling account's role in it." }),
    billingAccountId: Type.String({ description: 'The account that is billed.' }),
    environment: Type.Enum(['development', 'production']),
    revision: Type.Integer({ description: 'Grows with every change; the `ETag` in quotes.' }),
    createdAt: Time('When it was created.'),
    updatedAt: Time('When it last changed.'),
  },
  { description: 'What owns keys, sessions and usage.' },
);
export type Application = Static<typeof Application>;

export const CreateApplication = Type.Object({
  name: Name('For people; need not be unique.'),
  slug: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{3,40}$',
      description: '3–40 of a–z, 0–9 and -. Unique on this installation. Left out: made from the name.',
    }),
  ),
});
export type CreateApplication = Static<typeof CreateApplication>;

export const RenameApplication = Type.Object({ name: Name('The new name.') });
export type RenameApplication = Static<typeof RenameApplication>;

export const ApplicationPage = Page(Application);
export type ApplicationPage = Static<typeof ApplicationPage>;

export const ApplicationParams = Type.Object({ appId: Uuid('The application.') });
