// The memory of a consumer: the items that agents store, and the consents with which the consumer gives access.
import { type Static, Type } from 'typebox';
import { PageQuery, Page as PageSchema, Time, Uuid } from './common.ts';

export const MEMORY_ITEMS_MAX = 1_000;
export const MEMORY_BYTES_MAX = 4 * 1_048_576;
export const MEMORY_VALUE_BYTES_MAX = 65_536;
export const CONSENTS_MAX = 100;
const PATTERNS_MAX = 20;

/**
 * The pattern of a key. Excludes slashes, uppercase letters, and names with a special meaning in paths and URLs, such
 * as `..`.
 */
const KEY = '[a-z0-9][a-z0-9._-]{0,127}';

export const MemoryKey = Type.String({
  maxLength: 128,
  pattern: `^${KEY}$`,
  description: 'Name of the item, for example `address.home`: lower-case letters, digits, `.`, `_` and `-`.',
});

const Prefix = Type.String({ maxLength: 128, pattern: `^(${KEY})?$`, description: 'Prefix of the keys.' });

export const MemoryValue = Type.Unknown({ description: 'Any JSON value of at most 64 KiB.' });

const IfVersion = Type.Optional(
  Type.Integer({
    minimum: 0,
    description:
      'The version that you have read, or 0 if there is no item yet. If the current version differs, the request is refused and nothing is written.',
  }),
);

const ITEM_FIELDS = {
  key: MemoryKey,
  version: Type.Integer({ description: 'Increases with each write. Never reused.' }),
  updatedAt: Time('When the item was last written.'),
  updatedBy: Type.Object(
    {
      kind: Type.Enum(['consumer', 'agent_key']),
      id: Uuid('Id of the consumer or the agent key.'),
    },
    { description: 'Who last wrote the item.' },
  ),
};

export const MemoryItem = Type.Object(
  { ...ITEM_FIELDS, value: MemoryValue },
  { description: 'An item of the memory.' },
);
export type MemoryItem = Static<typeof MemoryItem>;

export const MemoryEntry = Type.Object(
  { ...ITEM_FIELDS, bytes: Type.Integer({ description: 'Size of the value as JSON.' }) },
  { description: 'An item of the memory, without its value.' },
);
export type MemoryEntry = Static<typeof MemoryEntry>;

export const MemoryPage = PageSchema(MemoryEntry, 'Ordered by key.');
export type MemoryPage = Static<typeof MemoryPage>;

export const ListMemory = Type.Object({ prefix: Type.Optional(Prefix), ...PageQuery.properties });
export type ListMemory = Static<typeof ListMemory>;

export const MemoryItemRef = Type.Object({ key: MemoryKey });
export type MemoryItemRef = Static<typeof MemoryItemRef>;

export const PutMemory = Type.Object({ key: MemoryKey, value: MemoryValue, ifVersion: IfVersion });
export type PutMemory = Static<typeof PutMemory>;

export const DeleteMemory = Type.Object({
  key: Type.Optional(MemoryKey),
  prefix: Type.Optional(
    Type.String({
      maxLength: 128,
      pattern: `^(${KEY})?$`,
      description: 'All items whose keys begin with this prefix. If empty, all items.',
    }),
  ),
});
export type DeleteMemory = Static<typeof DeleteMemory>;

export const DeletedMemory = Type.Object({
  deleted: Type.Integer({ minimum: 0, description: 'Number of items that were deleted.' }),
});
export type DeletedItems = Static<typeof DeletedMemory>;

// ---- consents ----------------------------------------------------------------------------------------------------------

const AgentKeySelector = Type.Union([Uuid('Id of an agent key.'), Type.Literal('*')], {
  description: 'Id of an agent key of the application, or `*` for all of them.',
});

const KeyPatterns = Type.Array(
  Type.String({
    maxLength: 128,
    pattern: '^([a-z0-9][a-z0-9._-]{0,127}|([a-z0-9][a-z0-9._-]{0,126})?\\*)$',
    description: 'A key, or a prefix of keys followed by `*`.',
  }),
  {
    minItems: 1,
    maxItems: PATTERNS_MAX,
    description: 'Keys of the items, or prefixes of keys, for example `address.*`.',
  },
);

const Access = Type.Enum(['read', 'write'], { description: '`write` allows both reading and writing.' });

export const GiveConsent = Type.Object({
  keyId: AgentKeySelector,
  keys: KeyPatterns,
  access: Access,
  expiresAt: Type.Optional(Time('When the consent expires. If absent, it is in force until it is withdrawn.')),
});
export type GiveConsent = Static<typeof GiveConsent>;

export const Consent = Type.Object(
  {
    id: Uuid('Id of the consent.'),
    keyId: AgentKeySelector,
    agent: Type.Optional(Type.String({ description: 'Name of the agent key. Absent for `*`.' })),
    keys: KeyPatterns,
    access: Access,
    createdAt: Time('When the consent was given.'),
    expiresAt: Type.Optional(Time('When the consent expires.')),
  },
  { description: 'What agents may do with the memory.' },
);
export type Consent = Static<typeof Consent>;

export const Consents = Type.Object({
  data: Type.Array(Consent, { description: 'Consents that are in force, newest first.' }),
});
export type Consents = Static<typeof Consents>;

export const WithdrawConsent = Type.Object({ id: Uuid('Id of the consent.') });
export type WithdrawConsent = Static<typeof WithdrawConsent>;

export const AgentKeyRef = Type.Object({ keyId: Uuid('Id of an agent key.') });
export type AgentKeyRef = Static<typeof AgentKeyRef>;

export const AgentKeySummary = Type.Object(
  { keyId: Uuid('Id of the agent key.'), name: Type.String({ description: 'Name of the agent key.' }) },
  { description: 'An agent key of the application.' },
);
export type AgentKeySummary = Static<typeof AgentKeySummary>;
