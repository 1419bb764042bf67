// The types of the tables for Kysely, derived from the row types where table and row type match. Columns are in camel
// case here and in snake case in the database (migrations/).

import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type { AssertNone } from '../../kit/assert-none.ts';
import type {
  AccountId,
  ApplicationId,
  AuditId,
  ConsumerSessionId,
  ContextId,
  KeyId,
  MailId,
  SessionId,
  VersionId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { ColumnMismatch } from './column-mismatch.ts';
import type { DatabaseColumns } from './generated/columns.ts';
import type { AccountRow, ApplicationRow, Role } from './rows/accounts.ts';
import type { ActionRow } from './rows/actions.ts';
import type { NewAuditRow, SealRow } from './rows/audit.ts';
import type { CertificateRow } from './rows/certificates.ts';
import type { CheckoutRow } from './rows/checkouts.ts';
import type { OperationRevisionRow, OperationRow } from './rows/configured-operations.ts';
import type { ConsentRow, MemoryRow } from './rows/consumer-memory.ts';
import type { ConsumerProviderRow } from './rows/consumer-providers.ts';
import type {
  ConsumerPasskeyRow,
  ConsumerRow,
  ConsumerSessionRow,
  ConsumerSignInRow,
  ConsumerTicketRow,
  IdentityRow,
} from './rows/consumers.ts';
import type { ContextRow, ContextUse, VersionSource } from './rows/contexts.ts';
import type { ControlRow } from './rows/controls.ts';
import type { GrantRow, KeyRow, TokenRow } from './rows/credentials.ts';
import type { BalanceRow, CreditEntryRow, Legs, ReservationRow } from './rows/credits.ts';
import type { DeviceAuthorizationRow } from './rows/device.ts';
import type { DownloadRow } from './rows/downloads.ts';
import type { EgressDayRow } from './rows/egress-days.ts';
import type { Actor, SessionEventType } from './rows/events.ts';
import type { ExtensionRow } from './rows/extensions.ts';
import type { HandoffRow } from './rows/handoffs.ts';
import type { HostRow, HostState } from './rows/hosts.ts';
import type { HumanSessionRow } from './rows/human-sessions.ts';
import type { IdempotencyRow } from './rows/idempotency.ts';
import type { InvitationRow } from './rows/invitations.ts';
import type { InvocationRow } from './rows/invocations.ts';
import type { LimitsRow } from './rows/limits.ts';
import type { MailRow } from './rows/mails.ts';
import type { OutboxRow } from './rows/outbox.ts';
import type { PageRow } from './rows/pages.ts';
import type { PasskeyRow } from './rows/passkeys.ts';
import type { OmittedPage, RecordedPageRow, RecordingFileRow, SegmentRow, SpanRow } from './rows/recordings.ts';
import type { SessionEnd, SessionRow } from './rows/sessions.ts';
import type { TicketRow } from './rows/sign-in-tickets.ts';
import type { CredentialUse, CredentialVersionRow, StoredCredentialRow } from './rows/stored-credentials.ts';
import type { UploadRow } from './rows/uploads.ts';
import type { SessionUsageRow } from './rows/usage.ts';
import type { UsageHour } from './rows/usage-hours.ts';
import type { DataKeyRow, SigningKeyRow } from './rows/vault.ts';
import type { DeliveryRow, WebhookRow } from './rows/webhooks.ts';

export interface Tables {
  accounts: Columns<AccountRow>;
  applications: Columns<ApplicationRow>;
  members: MembersTable;
  invitations: Columns<InvitationRow>;
  tokens: Columns<TokenRow>;
  passkeys: Columns<PasskeyRow>;
  recoveryCodes: RecoveryCodesTable;
  humanSessions: Columns<HumanSessionRow>;
  signInTickets: Columns<TicketRow, { tries: Generated<number> }>;
  applicationIdentities: Columns<IdentityRow>;
  consumers: Columns<ConsumerRow, { metadata: JsonbOrNull; memoryVersion: Generated<number> }>;
  consumerPasskeys: Columns<ConsumerPasskeyRow>;
  consumerSignIns: Columns<ConsumerSignInRow>;
  consumerTickets: Columns<ConsumerTicketRow, { tries: Generated<number> }>;
  consumerSessions: Columns<ConsumerSessionRow>;
  consumerUsedRefreshes: { hash: Buffer; sessionId: ConsumerSessionId; usedAt: Date };
  consumerProviders: Columns<ConsumerProviderRow, { metadata: Jsonb }>;
  consumerMemory: Columns<MemoryRow>;
  consumerConsents: Columns<ConsentRow>;
  keys: Columns<KeyRow, { grants: ColumnType<readonly GrantRow[], string | undefined, string> }>;
  deviceAuthorizations: Columns<DeviceAuthorizationRow>;
  hosts: Columns<
    HostRow,
    {
      state: Generated<HostState>;
      incarnation: OrNull<string>;
      leaseUntil: OrNull<Date>;
      draining: Generated<boolean>;
      url: OrNull<string>;
      labels: ColumnType<JsonObject, string | undefined, string>;
      version: OrNull<string>;
      warm: Generated<number>;
      secretMark: OrNull<string>;
      storeMark: OrNull<string>;
      clockMs: Generated<number>;
    }
  >;
  sessions: SessionsTable;
  applicationLimits: Columns<
    LimitsRow,
    { configured: ColumnType<JsonObject, string | undefined, string>; revision: Generated<number> }
  >;
  idempotency: Columns<IdempotencyRow, { kept: JsonbOrNull }>;
  sessionEvents: SessionEventsTable;
  sessionControls: Columns<ControlRow, { fence: Generated<number>; linkEpoch: Generated<number> }>;
  handoffs: Columns<
    HandoffRow,
    { claimTries: Generated<number>; evidence: JsonbOrNull; allowedOrigins: OrNull<string[]> }
  >;
  contexts: Columns<
    ContextRow,
    { wrappedKey: OrNull<Buffer>; version: Generated<number>; sizeBytes: Generated<number> }
  >;
  contextVersions: ContextVersionsTable;
  contextUses: Columns<ContextUse, { tries: Generated<number>; dueAt: OrNull<Date> }>;
  actions: Columns<ActionRow, { metadata: JsonbOrNull; decision: JsonbOrNull }>;
  invocations: Columns<
    InvocationRow,
    {
      output: JsonbOrNull;
      error: JsonbOrNull;
      metadata: JsonbOrNull;
      meters: Jsonb;
      attempts: Generated<number>;
      price: Generated<number>;
      reserved: Generated<number>;
      captured: Generated<number>;
    }
  >;
  creditBalances: Columns<BalanceRow, GeneratedBooks & { isLow: Generated<boolean> }>;
  creditReservations: Columns<
    ReservationRow,
    { captured: Generated<number>; seconds: Generated<number>; bytes: Generated<number> }
  >;
  creditEntries: Columns<CreditEntryRow, GeneratedBooks>;
  creditCheckouts: Columns<CheckoutRow>;
  webhooks: Columns<WebhookRow>;
  webhookDeliveries: Columns<DeliveryRow>;
  operations: Columns<OperationRow>;
  operationRevisions: Columns<OperationRevisionRow, { definition: Jsonb }>;
  storedCredentials: Columns<StoredCredentialRow>;
  storedCredentialVersions: Columns<CredentialVersionRow>;
  storedCredentialUses: Columns<CredentialUse>;
  mails: Columns<MailRow, { attempts: Generated<number>; tellsOfWaiting: Generated<boolean> }>;
  notificationSettings: {
    accountId: AccountId;
    mails: Generated<boolean>;
    mutedApplications: Generated<ApplicationId[]>;
    toldAt: OrNull<Date>;
  };
  toldItems: { accountId: AccountId; applicationId: ApplicationId; itemId: string; mailId: MailId };
  outbox: Columns<OutboxRow, { attempts: Generated<number> }>;
  uploads: Columns<UploadRow>;
  downloads: Columns<DownloadRow>;
  certificates: Columns<CertificateRow, { ders: readonly Buffer[] }>;
  extensionFiles: ExtensionFilesTable;
  extensions: Columns<ExtensionRow>;
  recordingPages: Columns<RecordedPageRow, { stored: Generated<boolean> }>;
  recordingSegments: Columns<SegmentRow, { samples: Jsonb }>;
  recordingRuns: RecordingRunsTable;
  recordingSpans: Columns<SpanRow, { sessionId: SessionId; toMs: number }>;
  recordingOmissions: Columns<OmittedPage, { sessionId: SessionId }>;
  recordingFiles: Columns<RecordingFileRow, { attempts: Generated<number> }>;
  logChunks: LogChunksTable;
  sessionPages: Columns<PageRow, { applicationId: ApplicationId; sessionId: SessionId }>;
  egressDays: Columns<EgressDayRow>;
  sessionUsage: Columns<SessionUsageRow>;
  usageHours: UsageHoursTable;
  usageSummed: { until: Date };
  auditEntries: AuditEntriesTable;
  auditSeals: Columns<SealRow>;
  vaultKeys: Columns<DataKeyRow>;
  signingKeys: Columns<SigningKeyRow, { publicJwk: Jsonb }>;
}

/** Does not compile if a type here does not match the columns of its table. After a new migration, run `npm run gen`. */
export type UnexpectedMismatch = AssertNone<Exclude<ColumnMismatch<Tables, DatabaseColumns>, ExpectedMismatch>>;

/** Does not compile if an expected mismatch no longer exists. */
export type ObsoleteMismatch = AssertNone<Exclude<ExpectedMismatch, ColumnMismatch<Tables, DatabaseColumns>>>;

type ExpectedMismatch =
  // A trigger numbers the entries.
  | 'auditEntries.number has no default in the database'
  // The only row has a constant key.
  | 'usageSummed.one of the database has no type'
  // Columns of earlier versions.
  | 'operationRevisions.credentialId of the database has no type'
  | 'sessionControls.holder of the database has no type'
  | 'sessionControls.expiresAt of the database has no type';

/** Written as a JSON string, because the driver would write a JavaScript array as a PostgreSQL array. */
type Jsonb = ColumnType<JsonObject, string, string>;
type JsonbOrNull = ColumnType<JsonObject | null, string | null | undefined, string | null>;
type OrNull<T> = ColumnType<T | null, T | null | undefined, T | null>;

/**
 * The column types for a row type: an optional member becomes a column that may be null. `Other` replaces or adds
 * columns.
 */
type Columns<Row, Other extends object = object> = Other & {
  [Name in keyof Row as Name extends keyof Other ? never : Name]-?: object extends Pick<Row, Name>
    ? OrNull<Row[Name]>
    : Row[Name];
};

type GeneratedBooks = { [Book in keyof Required<Legs>]: Generated<number> };

export interface RecoveryCodesTable {
  accountId: AccountId;
  hash: Buffer;
  usedAt: OrNull<Date>;
}

export interface MembersTable {
  applicationId: ApplicationId;
  accountId: AccountId;
  role: Role;
  createdAt: Date;
}

export type SessionsTable = Columns<
  Omit<SessionRow, 'end'>,
  {
    userMetadata: Jsonb;
    settings: Jsonb;
    proxyBytes: Generated<number>;
    egressBytes: Generated<number>;
    endStatus: OrNull<SessionEnd['status']>;
    endReason: OrNull<string>;
    endDetail: OrNull<string>;
    endDecidedAt: OrNull<Date>;
    /** The earliest of the due times in this row, computed by the database. */
    dueAt: ColumnType<Date, never, never>;
    attached: Generated<boolean>;
    box: JsonbOrNull;
    createDigest: OrNull<Buffer>;
    /**
     * When the files and the row itself are due for deletion. Null after the deletion, or while the session is running.
     */
    filesDueAt: OrNull<Date>;
    forgetDueAt: OrNull<Date>;
    /** Whether the response to the create is being sent or was lost. Null if it was delivered or is not tracked. */
    answer: OrNull<'owed' | 'lost'>;
  }
>;

export interface UsageHoursTable extends Omit<UsageHour, 'endReasons'> {
  applicationId: ApplicationId;
  /** Null for the row of the whole application. */
  keyId: OrNull<KeyId>;
  endReasons: Jsonb;
}

export interface SessionEventsTable {
  id: GeneratedAlways<number>;
  applicationId: ApplicationId;
  sessionId: OrNull<SessionId>;
  at: Date;
  type: SessionEventType;
  actorKind: Actor['kind'];
  actorId: OrNull<string>;
  detail: Jsonb;
}

export interface AuditEntriesTable {
  id: AuditId;
  applicationId: OrNull<ApplicationId>;
  chain: GeneratedAlways<string>;
  number: GeneratedAlways<number>;
  accountId: OrNull<AccountId>;
  at: Date;
  action: string;
  actorKind: NewAuditRow['actor']['kind'];
  actorId: OrNull<string>;
  actorName: OrNull<string>;
  viaKind: OrNull<string>;
  viaId: OrNull<string>;
  targetKind: OrNull<string>;
  targetId: OrNull<string>;
  outcome: NewAuditRow['outcome'];
  ip: OrNull<string>;
  userAgent: OrNull<string>;
  requestId: OrNull<string>;
  details: Jsonb;
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
  /** When the version is due for removal. Null if no removal is scheduled. */
  dueAt: OrNull<Date>;
}

export interface ExtensionFilesTable {
  applicationId: ApplicationId;
  checksum: string;
  usedAt: Date;
}

export interface RecordingRunsTable {
  sessionId: SessionId;
  page: number;
  run: number;
  checksum: string;
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
