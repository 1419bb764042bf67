// The operations on the database that the rest of the server may use. They are declared in rows/<noun>.ts and
// implemented in tables/<noun>.ts; no SQL is written outside this folder. The application id, if there is one, is the
// first parameter.
import type { Closeable } from '../../kit/scope.ts';
import type { Accounts, Applications } from './rows/accounts.ts';
import type { ActionRows } from './rows/actions.ts';
import type { AttemptRows } from './rows/attempts.ts';
import type { AuditRows } from './rows/audit.ts';
import type { CertificateRows } from './rows/certificates.ts';
import type { CheckoutRows } from './rows/checkouts.ts';
import type { ConfiguredOperationRows } from './rows/configured-operations.ts';
import type { ConsumerMemory } from './rows/consumer-memory.ts';
import type { ConsumerProviders } from './rows/consumer-providers.ts';
import type {
  ConsumerPasskeys,
  ConsumerSessions,
  ConsumerSignIns,
  Consumers,
  ConsumerTickets,
  Identities,
} from './rows/consumers.ts';
import type { ContextRows, ContextUses } from './rows/contexts.ts';
import type { ControlRows } from './rows/controls.ts';
import type { Keys, Tokens } from './rows/credentials.ts';
import type { CreditGrants, CreditReads, CreditRows } from './rows/credits.ts';
import type { DeviceAuthorizationRows } from './rows/device.ts';
import type { DownloadRows } from './rows/downloads.ts';
import type { EgressDays } from './rows/egress-days.ts';
import type { ApplicationEvents, EventRows } from './rows/events.ts';
import type { ExtensionRows } from './rows/extensions.ts';
import type { HandoffRows } from './rows/handoffs.ts';
import type { Hosts } from './rows/hosts.ts';
import type { HumanSessions } from './rows/human-sessions.ts';
import type { IdempotencyRows } from './rows/idempotency.ts';
import type { InboxRows } from './rows/inbox.ts';
import type { Invitations } from './rows/invitations.ts';
import type { InvocationRows } from './rows/invocations.ts';
import type { LimitsRows } from './rows/limits.ts';
import type { LineRows } from './rows/line.ts';
import type { LogRows } from './rows/logs.ts';
import type { Mails } from './rows/mails.ts';
import type { Members } from './rows/members.ts';
import type { OutboxRows } from './rows/outbox.ts';
import type { PageRows } from './rows/pages.ts';
import type { Passkeys } from './rows/passkeys.ts';
import type { QueueRows } from './rows/queues.ts';
import type { RecordingRows } from './rows/recordings.ts';
import type { RequestRateRows } from './rows/request-rates.ts';
import type { RetentionRows, StoredBytes } from './rows/retention.ts';
import type { SessionRows } from './rows/sessions.ts';
import type { SignInTickets } from './rows/sign-in-tickets.ts';
import type { StoredCredentialRows } from './rows/stored-credentials.ts';
import type { UploadRows } from './rows/uploads.ts';
import type { UsageRows } from './rows/usage.ts';
import type { UsageHours } from './rows/usage-hours.ts';
import type { DataKeyRows, SigningKeyRows } from './rows/vault.ts';
import type { WebhookRows } from './rows/webhooks.ts';

export interface Store extends Closeable {
  readonly accounts: Accounts;
  readonly applications: Applications;
  readonly members: Members;
  readonly invitations: Invitations;
  readonly tokens: Tokens;
  readonly keys: Keys;
  readonly humanSessions: HumanSessions;
  readonly passkeys: Passkeys;
  readonly signInTickets: SignInTickets;
  readonly identities: Identities;
  readonly consumers: Consumers;
  readonly consumerMemory: ConsumerMemory;
  readonly consumerPasskeys: ConsumerPasskeys;
  readonly consumerProviders: ConsumerProviders;
  readonly consumerSessions: ConsumerSessions;
  readonly consumerSignIns: ConsumerSignIns;
  readonly consumerTickets: ConsumerTickets;
  readonly device: DeviceAuthorizationRows;
  readonly hosts: Hosts;
  readonly sessions: SessionRows;
  readonly limits: LimitsRows;
  readonly line: LineRows;
  readonly requestRates: RequestRateRows;
  readonly attempts: AttemptRows;
  readonly egressDays: EgressDays;
  readonly usage: UsageRows;
  readonly usageHours: UsageHours;
  readonly idempotency: IdempotencyRows;
  readonly events: EventRows;
  readonly applicationEvents: ApplicationEvents;
  readonly controls: ControlRows;
  readonly handoffs: HandoffRows;
  readonly contexts: ContextRows;
  readonly contextUses: ContextUses;
  readonly checkouts: CheckoutRows;
  readonly credits: CreditRows & CreditReads & CreditGrants;
  readonly invocations: InvocationRows;
  readonly actions: ActionRows;
  readonly webhooks: WebhookRows;
  readonly configuredOperations: ConfiguredOperationRows;
  readonly storedCredentials: StoredCredentialRows;
  readonly mails: Mails;
  readonly inbox: InboxRows;
  readonly outbox: OutboxRows;
  readonly queues: QueueRows;
  readonly uploads: UploadRows;
  readonly downloads: DownloadRows;
  readonly storedBytes: StoredBytes;
  readonly retention: RetentionRows;
  readonly certificates: CertificateRows;
  readonly recordings: RecordingRows;
  readonly extensions: ExtensionRows;
  readonly logs: LogRows;
  readonly pages: PageRows;
  readonly audit: AuditRows;
  readonly vault: DataKeyRows;
  readonly signingKeys: SigningKeyRows;
  /**
   * Runs `work` in one transaction: either all of its changes become durable, or none. If a statement fails, `work`
   * must reject.
   */
  atomically<T>(work: (trx: AtomicTables) => Promise<T>): Promise<T>;
  /** Whether the database itself prevents the server from changing or deleting append-only rows (confine.ts). */
  readonly isConfined: boolean;
  /** Rejects if the database does not respond. */
  ping(): Promise<void>;
  /**
   * Calls `onNotification` for each NOTIFY on the channel, including after a reconnect. Calls `onGap` when
   * notifications may have been missed.
   */
  listen(channel: Channel, onNotification: (payload: string) => void, onGap: () => void): Promise<Closeable>;
}

/** The tables that may be changed in one transaction with the audit entry about the change. */
export type AtomicTables = Pick<
  Store,
  | 'applications'
  | 'members'
  | 'invitations'
  | 'tokens'
  | 'keys'
  | 'humanSessions'
  | 'identities'
  | 'consumers'
  | 'consumerMemory'
  | 'consumerProviders'
  | 'consumerSessions'
  | 'consumerSignIns'
  | 'device'
  | 'limits'
  | 'webhooks'
  | 'controls'
  | 'handoffs'
  | 'configuredOperations'
  | 'storedCredentials'
  | 'actions'
  | 'invocations'
  | 'audit'
  | 'mails'
  | 'inbox'
  | 'applicationEvents'
  | 'signInTickets'
> & {
  readonly accounts: Pick<Store['accounts'], 'change'>;
  readonly credits: CreditGrants;
  readonly checkouts: CheckoutRows;
};

/**
 * `credential_revoked`: the payload is the hex hash of a key or token that was revoked or changed, followed by ` keep`
 * if its open connections stay open. `session_event`: the payload is the application id, a space, and the session id,
 * or the application id alone for events of the application. `device_changed`: the id of a device authorization whose
 * status has changed. `action_changed`: the id of an Action whose state has changed. `inbox_changed`: the id of an
 * application in which the Actions or hand-offs that wait for members have changed. `hosts_changed` (no payload): a
 * host joined, left or is draining. `line_moved` (no payload): a waiting create may be admitted. A notification may be
 * lost when a process dies, so readers also poll.
 */
export type Channel =
  | 'credential_revoked'
  | 'session_event'
  | 'device_changed'
  | 'action_changed'
  | 'inbox_changed'
  | 'hosts_changed'
  | 'line_moved';
