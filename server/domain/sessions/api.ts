// The interface of the session domain, and the types that it uses. Implemented by sessions.ts.

import type { Warning } from '../../../contract/common.ts';
import type { CreateSession, ProjectUsage, Session } from '../../../contract/sessions.ts';
import type { IdempotencyRun } from '../../engines/store/rows/idempotency.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { QueueTicket } from '../fleet/line-ticket.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Quota } from '../limits/admission.ts';
import type { ResponseDelivery } from './deliveries.ts';
import type { KeptSettings, SettingsAt } from './settings.ts';

/** A create body after validation, with aliases merged and defaults applied. */
export interface SessionRequest {
  /** The project that the caller names. The domain compares it with the application of the key. */
  readonly projectId?: string;
  /** Seconds from creation. If absent, the default applies. */
  readonly timeout?: number;
  readonly keepAlive: boolean;
  /** A region of this installation. If absent, the default region applies. */
  readonly region?: string;
  /**
   * A region name that official clients use and that is not a region of this installation. Kept for the compatibility
   * mount.
   */
  readonly regionAsked?: string;
  readonly userMetadata: JsonObject;
  readonly settings: KeptSettings;
  readonly watcherSettings: WatcherSettings;
  /** Stored with the session, and returned in the response's `warnings`. */
  readonly warnings: readonly Warning[];
}

/**
 * Settings of the create that a watcher checks, as the caller sent them but without empty lists. Never stored in this
 * form.
 */
export interface WatcherSettings extends SettingsAt<'check'> {
  readonly caCertificates?: readonly string[];
  readonly proxies?: NonNullable<CreateSession['proxies']>;
}

/** A session as in the contract. Connect fields are present only if this caller may see them. */
export type SessionView = Session & {
  /** `SessionRequest.regionAsked` of the create. Never sent in a response under this name. */
  readonly regionAsked?: string;
};

export interface SessionListQuery {
  readonly status?: string;
  readonly q?: string;
  readonly endReason?: string;
  readonly keyId?: string;
  readonly atLeastSeconds?: number;
  readonly atMostSeconds?: number;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly limit?: number;
  readonly before?: string;
}

export interface SessionChange {
  readonly projectId?: string;
  readonly status?: 'REQUEST_RELEASE';
  readonly userMetadata?: JsonObject;
  readonly timeout?: number;
}

/** Options of a create that are not part of its body. */
export interface CreateOptions {
  /**
   * Aborted when the caller disconnects. A create that has not been placed yet is then cancelled. A placed session
   * continues.
   */
  readonly signal: AbortSignal;
  /** Seconds that the create may wait in the queue. If absent, the create is refused at once when there is no room. */
  readonly waitSeconds?: number;
  /**
   * Set in a fleet if the host that received the request queues this create (see fleet/line.ts). This host then refuses
   * the create instead of queueing it.
   */
  readonly line?: QueueTicket;
  /** Present when the request has an `Idempotency-Key`. */
  readonly run?: IdempotencyRun;
  /**
   * Present if the request has no `Idempotency-Key` and comes from a client that repeats a request after a lost
   * response.
   */
  readonly delivery?: ResponseDelivery;
  /** If set, the session holds no credit, because the invocation that creates the session holds it. */
  readonly isPaid?: true;
  /** If set, no client may connect to the session, because the service types credentials into its pages. */
  readonly isExclusive?: true;
}

export interface CreatedSession {
  readonly session: SessionView;
  /** The warnings of the request. */
  readonly warnings: readonly Warning[];
  /** Absent if the session of an earlier create was returned. */
  readonly quota?: Quota;
  /** Time in the queue. */
  readonly waitedMs: number;
}

export interface Sessions {
  create(caller: AgentCaller, request: SessionRequest, options: CreateOptions): Promise<CreatedSession>;
  /**
   * Returns a session that an earlier request created. Waits until it is running or has ended, but no longer than a start
   * may take.
   */
  awaitExisting(caller: AgentCaller, id: SessionId): Promise<SessionView>;
  list(caller: AgentCaller, query: SessionListQuery): Promise<{ sessions: SessionView[]; nextBefore?: string }>;
  read(caller: AgentCaller, id: string): Promise<SessionView>;
  update(caller: AgentCaller, id: string, change: SessionChange): Promise<SessionView>;
  usage(caller: AgentCaller): Promise<ProjectUsage>;
}
