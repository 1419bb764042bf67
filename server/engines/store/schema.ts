// The tables as Kysely sees them: columns in camel case here, in snake case in the database (migrations/).
import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type { AccountId, ApplicationId, HostId, KeyId, SessionId, TokenId } from '../../kit/ids.ts';
import type { Actor, JsonObject, Role, SessionEnd, SessionEventType, SessionStatus } from './store.ts';

export interface Tables {
  accounts: AccountsTable;
  applications: ApplicationsTable;
  members: MembersTable;
  tokens: TokensTable;
  keys: KeysTable;
  hosts: HostsTable;
  sessions: SessionsTable;
  applicationLimits: ApplicationLimitsTable;
  idempotency: IdempotencyTable;
  sessionEvents: SessionEventsTable;
}

/** Written as text, because the driver would write a JavaScript array as a PostgreSQL array. */
type Jsonb = ColumnType<JsonObject, string, string>;
type JsonbOrNull = ColumnType<JsonObject | null, string | null | undefined, string | null>;
type OrNull<T> = ColumnType<T | null, T | null | undefined, T | null>;

export interface AccountsTable {
  id: AccountId;
  name: string;
  createdAt: Date;
}

export interface ApplicationsTable {
  id: ApplicationId;
  name: string;
  slug: string;
  billingAccountId: AccountId;
  revision: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface MembersTable {
  applicationId: ApplicationId;
  accountId: AccountId;
  role: Role;
  createdAt: Date;
}

interface CredentialColumns {
  name: string;
  prefix: string;
  hash: Buffer;
  scopes: string[];
  cidrAllow: string[];
  createdAt: Date;
  expiresAt: OrNull<Date>;
  revokedAt: OrNull<Date>;
  lastUsedAt: OrNull<Date>;
  lastUsedIp: OrNull<string>;
}

export interface TokensTable extends CredentialColumns {
  id: TokenId;
  accountId: AccountId;
  applicationIds: OrNull<ApplicationId[]>;
}

export interface KeysTable extends CredentialColumns {
  id: KeyId;
  applicationId: ApplicationId;
  revision: number;
}

export interface HostsTable {
  id: HostId;
  region: string;
  slots: number;
  startedAt: Date;
}

export interface SessionsTable {
  id: SessionId;
  applicationId: ApplicationId;
  hostId: HostId;
  keyId: OrNull<KeyId>;
  status: SessionStatus;
  region: string;
  keepAlive: boolean;
  userMetadata: Jsonb;
  settings: Jsonb;
  proxyBytes: Generated<number>;
  createdAt: Date;
  updatedAt: Date;
  startedAt: OrNull<Date>;
  expiresAt: Date;
  endedAt: OrNull<Date>;
  endStatus: OrNull<SessionEnd['status']>;
  endReason: OrNull<string>;
  endDetail: OrNull<string>;
  endDecidedAt: OrNull<Date>;
  connectBy: OrNull<Date>;
  releaseAt: OrNull<Date>;
  /** The earliest of the times at which something is to be done; computed by the database. */
  dueAt: ColumnType<Date, never, never>;
  attached: Generated<boolean>;
  box: JsonbOrNull;
  createDigest: OrNull<Buffer>;
  /** The create's answer is on its way, or was lost on it. Null: delivered, or nobody asks. */
  answer: OrNull<'owed' | 'lost'>;
}

export interface ApplicationLimitsTable {
  applicationId: ApplicationId;
  configured: ColumnType<JsonObject, string | undefined, string>;
  revision: Generated<number>;
  updatedAt: Date;
}

export interface IdempotencyTable {
  owner: AccountId | ApplicationId;
  keyDigest: Buffer;
  run: string;
  requestDigest: Buffer;
  operation: string;
  hostId: HostId;
  sessionId: OrNull<SessionId>;
  kept: JsonbOrNull;
  createdAt: Date;
  expiresAt: Date;
}

export interface SessionEventsTable {
  id: GeneratedAlways<number>;
  applicationId: ApplicationId;
  sessionId: SessionId;
  at: Date;
  type: SessionEventType;
  actorKind: Actor['kind'];
  actorId: OrNull<string>;
  detail: Jsonb;
}
