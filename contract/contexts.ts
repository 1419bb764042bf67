// Contexts: cookies and storage that outlive a session, in versions; and their exchange form, Playwright's storage state.
import { type Static, Type } from 'typebox';
import { Time, Uuid, Warning } from './common.ts';

export const CONTEXTS_PER_APPLICATION_MAX = 10_000;
export const CONTEXT_LIST_MAX = 1000;
export const CONTEXT_NAME_MAX_CHARACTERS = 128;
/** Versions behind the newest one that are kept, and for how long. */
export const EARLIER_VERSIONS_MAX = 5;
export const EARLIER_VERSIONS_DAYS = 7;

const ContextName = Type.String({
  minLength: 1,
  maxLength: CONTEXT_NAME_MAX_CHARACTERS,
  description: "Unique among the application's contexts, without regard to case.",
});

const Inert = (description: string) =>
  Type.Optional(Type.String({ description: `Compatibility mount only. ${description}` }));

export const Context = Type.Object(
  {
    id: Uuid('The context.'),
    createdAt: Time('When it was created.'),
    updatedAt: Time('When its newest version was made.'),
    projectId: Type.String({ description: 'The application that the context belongs to.' }),
    name: Type.Optional(ContextName),
    version: Type.Integer({ description: 'The newest version; 0: nothing was saved yet.' }),
    sizeBytes: Type.Integer({ description: 'What the newest version unpacks to, in bytes.' }),
    lastSessionId: Type.Optional(Uuid('The session that was saved last.')),
    publicKey: Inert('Of no use: contexts are encrypted by the service.'),
    cipherAlgorithm: Inert('Of no use.'),
    initializationVectorSize: Type.Optional(Type.Integer({ description: 'Compatibility mount only. Of no use.' })),
    uploadUrl: Inert('Always empty: profiles are not uploaded by hand.'),
    warnings: Type.Optional(
      Type.Array(Warning, { description: 'Only where a body had unknown fields, and only in the answer to it.' }),
    ),
  },
  { description: 'Stored cookies and storage that sessions start from.' },
);
export type Context = Static<typeof Context>;

export const CreateContext = Type.Object({
  projectId: Type.Optional(Type.String({ description: "Must be the agent key's application. Left out: it is." })),
  name: Type.Optional(ContextName),
});
export type CreateContext = Static<typeof CreateContext>;

export const ContextParams = Type.Object({ id: Uuid('The context.') });

export const ContextQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: CONTEXT_LIST_MAX,
      default: CONTEXT_LIST_MAX,
      description: 'How many at most.',
    }),
  ),
  before: Type.Optional(Uuid('The page after this context. The header `x-next-before` of an answer names it.')),
});
export type ContextQuery = Static<typeof ContextQuery>;

export const VERSION_SOURCES = ['session', 'restore', 'fork', 'import'] as const;

export const ContextVersion = Type.Object(
  {
    version: Type.Integer({ description: 'Grows with every save.' }),
    createdAt: Time('When it was made.'),
    source: Type.Enum([...VERSION_SOURCES], {
      description:
        'What made it: the end of a session, `restore` of an earlier one, `fork` of another context, or `import`.',
    }),
    sessionId: Type.Optional(Uuid('With `session`: which one.')),
    partial: Type.Boolean({
      description:
        'The session failed: cookies are those copied aside while it ran, the rest is as it was when it started.',
    }),
    sizeBytes: Type.Integer({ description: 'What it unpacks to, in bytes.' }),
    current: Type.Boolean({ description: 'Sessions start from this one.' }),
    expiresAt: Type.Optional(Time('An earlier version: when it goes.')),
  },
  { description: 'One state of a context.' },
);
export type ContextVersion = Static<typeof ContextVersion>;

export const RestoreContext = Type.Object({
  version: Type.Integer({ minimum: 1, description: 'An earlier version; it becomes the newest, under a new number.' }),
});
export type RestoreContext = Static<typeof RestoreContext>;

export const ForkContext = Type.Object({
  name: Type.Optional(ContextName),
  version: Type.Optional(Type.Integer({ minimum: 1, description: 'Which version to copy. Left out: the newest.' })),
});
export type ForkContext = Static<typeof ForkContext>;

// ---- Playwright's storage state ------------------------------------------------------------------------------------

const StorageCookie = Type.Object({
  name: Type.String({ maxLength: 4096 }),
  value: Type.String({ maxLength: 4096 }),
  domain: Type.String({ minLength: 1, maxLength: 255, description: 'With a leading dot: subdomains too.' }),
  path: Type.String({ minLength: 1, maxLength: 1024 }),
  expires: Type.Number({ description: 'Seconds since 1970; -1: a session cookie.' }),
  httpOnly: Type.Boolean(),
  secure: Type.Boolean(),
  sameSite: Type.Enum(['Strict', 'Lax', 'None']),
  partitionKey: Type.Optional(Type.String({ maxLength: 512, description: 'Top-level site of a partitioned cookie.' })),
});

export const StorageState = Type.Object(
  {
    cookies: Type.Array(StorageCookie, { maxItems: 5000 }),
    origins: Type.Array(
      Type.Object({
        origin: Type.String({ maxLength: 512, description: 'For example `https://shop.example`.' }),
        localStorage: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), { maxItems: 10_000 }),
      }),
      { maxItems: 1000 },
    ),
  },
  { description: "Playwright's storage state: cookies, and local storage by origin." },
);
export type StorageState = Static<typeof StorageState>;
