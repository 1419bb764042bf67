// The tables as Kysely sees them: columns in camel case here, in snake case in the database (migrations/).

import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type {
  AccountId,
  ApplicationId,
  CertificateId,
  ContextId,
  DownloadId,
  ExtensionId,
  HostId,
  KeyId,
  SessionId,
  TokenId,
  UploadId,
  VersionId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Role } from './rows/accounts.ts';
import type { VersionSource } from './rows/contexts.ts';
import type { DownloadState } from './rows/downloads.ts';
import type { Actor, SessionEventType } from './rows/events.ts';
import type { SessionEnd, SessionStatus } from './rows/sessions.ts';

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
  sessionControls: SessionControlsTable;
  contexts: ContextsTable;
  contextVersions: ContextVersionsTable;
  contextUses: ContextUsesTable;
  outbox: OutboxTable;
  uploads: UploadsTable;
  downloads: DownloadsTable;
  certificates: CertificatesTable;
  extensionFiles: ExtensionFilesTable;
  extensions: ExtensionsTable;
  recordingPages: RecordingPagesTable;
  recordingSegments: RecordingSegmentsTable;
  recordingRuns: RecordingRunsTable;
  recordingSpans: RecordingSpansTable;
  recordingOmissions: RecordingOmissionsTable;
  recordingFiles: RecordingFilesTable;
  logChunks: LogChunksTable;
  sessionPages: SessionPagesTable;
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
  issuedBy: OrNull<TokenId>;
}

export interface KeysTable extends CredentialColumns {
  id: KeyId;
  applicationId: ApplicationId;
  revision: number;
  replacedBy: OrNull<KeyId>;
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
  egressBytes: Generated<number>;
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
  /** When its files go, and when the row itself does; null once done, or while it runs. */
  filesDueAt: OrNull<Date>;
  forgetDueAt: OrNull<Date>;
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

export interface SessionControlsTable {
  sessionId: SessionId;
  applicationId: ApplicationId;
  fence: Generated<number>;
  linkEpoch: Generated<number>;
  holder: OrNull<string>;
  expiresAt: OrNull<Date>;
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

export interface ContextsTable {
  id: ContextId;
  applicationId: ApplicationId;
  name: OrNull<string>;
  wrappedKey: OrNull<Buffer>;
  version: Generated<number>;
  sizeBytes: Generated<number>;
  lastSessionId: OrNull<SessionId>;
  createdAt: Date;
  updatedAt: Date;
}

export interface ContextVersionsTable {
  id: VersionId;
  contextId: ContextId;
  applicationId: ApplicationId;
  state: 'writing' | 'kept' | 'gone';
  version: OrNull<number>;
  source: VersionSource;
  sessionId: OrNull<SessionId>;
  partial: boolean;
  sizeBytes: Generated<number>;
  archiveOf: OrNull<VersionId>;
  archiveChecksum: OrNull<Buffer>;
  cookiesOf: OrNull<VersionId>;
  createdAt: Date;
  /** When it is to be removed, if it is. */
  dueAt: OrNull<Date>;
}

export interface ContextUsesTable {
  sessionId: SessionId;
  contextId: ContextId;
  applicationId: ApplicationId;
  hostId: HostId;
  exclusive: boolean;
  fromVersion: OrNull<number>;
  createdAt: Date;
  savingSince: OrNull<Date>;
  tries: Generated<number>;
  dueAt: OrNull<Date>;
}

export interface OutboxTable {
  id: string;
  applicationId: ApplicationId;
  hostId: HostId;
  key: string;
  staged: string;
  contentType: OrNull<string>;
  attempts: Generated<number>;
  dueAt: Date;
  createdAt: Date;
}

export interface UploadsTable {
  id: UploadId;
  applicationId: ApplicationId;
  sessionId: SessionId;
  name: string;
  size: number;
  checksum: string;
  createdAt: Date;
}

export interface DownloadsTable {
  id: DownloadId;
  applicationId: ApplicationId;
  sessionId: SessionId;
  hostId: HostId;
  guid: string;
  state: DownloadState;
  filename: string;
  mimeType: OrNull<string>;
  size: OrNull<number>;
  checksum: OrNull<string>;
  failure: OrNull<string>;
  createdAt: Date;
  finishedAt: OrNull<Date>;
}

export interface CertificatesTable {
  id: CertificateId;
  applicationId: ApplicationId;
  ders: Buffer[];
  subjects: string[];
  fingerprints: string[];
  notAfter: Date;
  createdAt: Date;
}

export interface ExtensionFilesTable {
  applicationId: ApplicationId;
  checksum: string;
  usedAt: Date;
}

export interface ExtensionsTable {
  id: ExtensionId;
  applicationId: ApplicationId;
  checksum: string;
  fileName: string;
  size: number;
  name: string;
  version: string;
  manifestVersion: number;
  ownId: OrNull<string>;
  createdAt: Date;
  usedAt: Date;
}

export interface RecordingPagesTable {
  sessionId: SessionId;
  page: number;
  startedAt: Date;
  stored: Generated<boolean>;
}

export interface RecordingSegmentsTable {
  sessionId: SessionId;
  page: number;
  sequence: number;
  run: number;
  startMs: number;
  durationMs: number;
  width: number;
  height: number;
  bytes: number;
  payloadAt: number;
  samples: Jsonb;
}

export interface RecordingRunsTable {
  sessionId: SessionId;
  page: number;
  run: number;
  checksum: string;
}

export interface RecordingSpansTable {
  sessionId: SessionId;
  page: number;
  kind: 'hidden' | 'missing';
  fromMs: number;
  toMs: number;
  why: OrNull<string>;
}

export interface RecordingOmissionsTable {
  sessionId: SessionId;
  why: 'too_many_at_once' | 'too_many_in_all';
  targetId: string;
  page: OrNull<number>;
}

export interface RecordingFilesTable {
  sessionId: SessionId;
  page: number;
  hostId: HostId;
  state: 'PENDING' | 'COMPLETED' | 'FAILED';
  assembly: string;
  size: OrNull<number>;
  attempts: Generated<number>;
  requestedAt: Date;
  completedAt: OrNull<Date>;
  failure: OrNull<string>;
}

export interface LogChunksTable {
  applicationId: ApplicationId;
  sessionId: SessionId;
  first: number;
  last: number;
  kinds: Jsonb;
  lines: Buffer;
  writtenAt: Date;
}

export interface SessionPagesTable {
  applicationId: ApplicationId;
  sessionId: SessionId;
  number: number;
  targetId: string;
  appearedAt: Date;
}
