// The interface of the session domain and its values; sessions.ts implements it.

import type { Warning } from '../../../contract/common.ts';
import type { CreateSession, ProjectUsage, Session } from '../../../contract/sessions.ts';
import type { IdempotencyRun } from '../../engines/store/rows/idempotency.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Quota } from '../limits/admission.ts';
import type { Delivery } from './deliveries.ts';
import type { KeptSettings, SettingsAt } from './settings.ts';

/** A create body after validation: aliases merged, refusals made, defaults that are ours applied. */
export interface SessionRequest {
  /** As sent; the domain compares it with the key's application. */
  readonly projectId?: string;
  /** Seconds from creation. Absent: the default. */
  readonly timeout?: number;
  readonly keepAlive: boolean;
  /** One of our own regions. Absent: the default one. */
  readonly region?: string;
  /** A region name of official clients that is not ours; kept with the session for the compatibility mount. */
  readonly regionAsked?: string;
  readonly userMetadata: JsonObject;
  readonly settings: KeptSettings;
  readonly forWatchers: WatcherSettings;
  /** Come first in the response's `warnings`; the domain appends its own. */
  readonly warnings: readonly Warning[];
}

/** What the create names that a watcher judges, as given; empty lists are left out. Never stored as it is. */
export interface WatcherSettings extends SettingsAt<'check'> {
  readonly caCertificates?: readonly string[];
  readonly proxies?: NonNullable<CreateSession['proxies']>;
}

/** A session as the contract shows it. Connect fields are there only where this caller may see them. */
export type SessionView = Session & {
  /** `SessionRequest.regionAsked` of its create. Never answered under this name. */
  readonly regionAsked?: string;
};

export interface SessionListQuery {
  readonly status?: string;
  readonly q?: string;
  readonly endReason?: string;
  readonly keyId?: string;
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

/** How a create is to be handled, beside what it requests. */
export interface CreateOptions {
  /** Aborted when the caller hangs up. Before it is placed a create then ends; a session that was placed stays. */
  readonly signal: AbortSignal;
  /** Seconds that the create may wait in the queue. Absent: it is refused at once. */
  readonly waitSeconds?: number;
  /** Present when the request has an `Idempotency-Key`. */
  readonly run?: IdempotencyRun;
  /** Present when it has none and its client sends it again after a lost response. */
  readonly delivery?: Delivery;
}

export interface CreatedSession {
  readonly session: SessionView;
  /** Those of the request, then the domain's own. */
  readonly warnings: readonly Warning[];
  /** Absent where an earlier create's session was given. */
  readonly quota?: Quota;
  /** Time in the queue. */
  readonly waitedMs: number;
}

export interface Sessions {
  create(caller: AgentCaller, request: SessionRequest, options: CreateOptions): Promise<CreatedSession>;
  /** The session of an earlier create, as a create returns it: once its browser is up. */
  again(caller: AgentCaller, id: SessionId): Promise<SessionView>;
  list(caller: AgentCaller, query: SessionListQuery): Promise<{ sessions: SessionView[]; nextBefore?: string }>;
  read(caller: AgentCaller, id: string): Promise<SessionView>;
  update(caller: AgentCaller, id: string, change: SessionChange): Promise<SessionView>;
  usage(caller: AgentCaller): Promise<ProjectUsage>;
}
