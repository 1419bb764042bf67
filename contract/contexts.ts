// Contexts: versioned cookies and storage that outlive a session, and their import and export as Playwright's storage
// state.
import { type Static, Type } from 'typebox';
import { Time, Uuid, Warning } from './common.ts';

export const CONTEXTS_PER_APPLICATION_MAX = 10_000;
export const CONTEXT_LIST_MAX = 1000;
export const CONTEXT_NAME_CHARACTERS_MAX = 128;
/** Maximum number of versions that are kept in addition to the newest one. */
export const EARLIER_VERSIONS_MAX = 5;
/** Number of days for which a version is kept after it has been replaced by a newer one. */
export const EARLIER_VERSIONS_RETENTION_DAYS = 7;

const ContextName = Type.String({
  minLength: 1,
  maxLength: CONTEXT_NAME_CHARACTERS_MAX,
  description: 'Name of the context. Must be unique within the application, ignoring case.',
});

const UnusedField = (description: string) =>
  Type.Optional(Type.String({ description: `Compatibility mount only. ${description}` }));

export const Context = Type.Object(
  {
    id: Uuid('Id of the context.'),
    createdAt: Time('When the context was created.'),
    updatedAt: Time('When the newest version was saved.'),
    projectId: Type.String({ description: 'Id of the application that the context belongs to.' }),
    name: Type.Optional(ContextName),
    version: Type.Integer({ description: 'Number of the newest version. 0 if nothing has been saved yet.' }),
    sizeBytes: Type.Integer({ description: 'Unpacked size of the newest version, in bytes.' }),
    lastSessionId: Type.Optional(Uuid('Id of the session that was saved last.')),
    publicKey: UnusedField('Not used: the service encrypts contexts itself.'),
    cipherAlgorithm: UnusedField('Not used.'),
    initializationVectorSize: Type.Optional(Type.Integer({ description: 'Compatibility mount only. Not used.' })),
    uploadUrl: UnusedField('Always empty: profiles cannot be uploaded.'),
    warnings: Type.Optional(
      Type.Array(Warning, { description: 'Present only in the response to a request whose body had unknown fields.' }),
    ),
  },
  { description: 'Stored cookies and storage that sessions start from.' },
);
export type Context = Static<typeof Context>;

export const CreateContext = Type.Object({
  projectId: Type.Optional(
    Type.String({ description: 'Id of the application. Must be that of the agent key, which is the default.' }),
  ),
  name: Type.Optional(ContextName),
});
export type CreateContext = Static<typeof CreateContext>;

export const ContextParams = Type.Object({ id: Uuid('Id of the context.') });

export const ContextQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: CONTEXT_LIST_MAX,
      default: CONTEXT_LIST_MAX,
      description: 'Maximum number of contexts to return.',
    }),
  ),
  before: Type.Optional(
    Uuid(
      'Return the contexts that follow this context in the list. Use the value of the response header `x-next-before`.',
    ),
  ),
});
export type ContextQuery = Static<typeof ContextQuery>;

export const VERSION_SOURCES = ['session', 'restore', 'fork', 'import'] as const;

export const ContextVersion = Type.Object(
  {
    version: Type.Integer({ description: 'Version number. Increases with every save.' }),
    createdAt: Time('When the version was created.'),
    source: Type.Enum([...VERSION_SOURCES], {
      description:
        'How the version was created: `session` at the end of a session, `restore` from an earlier version, `fork` from another context, `import` from a storage state.',
    }),
    sessionId: Type.Optional(Uuid('With `session`, the id of the session.')),
    partial: Type.Boolean({
      description:
        'Whether only cookies were saved because the session failed. The cookies are from the last copy made while the session was running; everything else is as it was when the session started.',
    }),
    sizeBytes: Type.Integer({ description: 'Unpacked size, in bytes.' }),
    current: Type.Boolean({ description: 'Whether new sessions start from this version.' }),
    expiresAt: Type.Optional(Time('When the version will be deleted. Present on earlier versions only.')),
  },
  { description: 'A version of a context.' },
);
export type ContextVersion = Static<typeof ContextVersion>;

export const RestoreContext = Type.Object({
  version: Type.Integer({
    minimum: 1,
    description: 'Number of an earlier version. A copy of it becomes the newest version, with a new number.',
  }),
});
export type RestoreContext = Static<typeof RestoreContext>;

export const ForkContext = Type.Object({
  name: Type.Optional(ContextName),
  version: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Number of the version to copy. Defaults to the newest.' }),
  ),
});
export type ForkContext = Static<typeof ForkContext>;

export const ExportQuery = Type.Object({
  version: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Number of the version to export. Defaults to the newest.' }),
  ),
});
export type ExportQuery = Static<typeof ExportQuery>;

// ---- Playwright's storage state ------------------------------------------------------------------------------------

const StorageCookie = Type.Object({
  name: Type.String({ maxLength: 4096 }),
  value: Type.String({ maxLength: 4096 }),
  domain: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'Domain of the cookie. A leading dot includes subdomains.',
  }),
  path: Type.String({ minLength: 1, maxLength: 1024 }),
  expires: Type.Number({ description: 'Expiry in seconds since 1970. -1 for a session cookie.' }),
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
        origin: Type.String({ maxLength: 512, description: 'Origin, for example `https://shop.example`.' }),
        localStorage: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), { maxItems: 10_000 }),
      }),
      { maxItems: 1000 },
    ),
  },
  { description: 'Storage state as in Playwright: cookies, and local storage by origin.' },
);
export type StorageState = Static<typeof StorageState>;
