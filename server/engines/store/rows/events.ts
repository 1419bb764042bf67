// Events of sessions, and events of an application that belong to no session.

import type { ApplicationId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export type SessionEventType =
  | 'session.created'
  | 'session.launched'
  | 'session.claimed'
  | 'session.started'
  | 'client.connected'
  | 'client.disconnected'
  | 'client.refused'
  | 'session.updated'
  | 'recording.limited'
  | 'file.uploaded'
  | 'download.completed'
  | 'download.failed'
  | 'recording.ready'
  | 'recording.failed'
  | 'session.adopted'
  | 'session.release_requested'
  | 'session.end_decided'
  | 'session.ended'
  | 'control.taken'
  | 'control.given_back'
  | 'control.expired'
  | 'control.refused'
  | 'handoff.requested'
  | 'handoff.claimed'
  | 'handoff.returned'
  | 'handoff.completed'
  | 'handoff.cancelled'
  | 'handoff.expired'
  | 'devtools.opened'
  | 'devtools.closed'
  | 'live.links_revoked'
  | 'session.events_limited'
  | 'session.credit_low'
  | 'credit.low'
  | 'credit.exhausted'
  | 'context.restored'
  | 'context.version_skipped'
  | 'context.saved'
  | 'context.saved_partially'
  | 'context.save_failed'
  | 'context.overtaken'
  | 'network.refused'
  | 'network.failed'
  | 'navigation.refused'
  | 'page.refused'
  | 'proxy.failed'
  | 'operation.published'
  | 'operation.withdrawn'
  | 'invocation.succeeded'
  | 'invocation.failed'
  | 'invocation.ambiguous'
  | 'invocation.cancelled'
  | 'agent_key.revoked'
  | 'action.prepared'
  | 'action.approved'
  | 'action.refused'
  | 'action.expired'
  | 'action.executed'
  | 'action.cancelled'
  | 'consumer.session.started'
  | 'consumer.session.ended'
  | 'consumer.session.replayed'
  | 'consumer.deleted'
  | 'consumer.linked'
  | 'memory.written'
  | 'memory.deleted'
  | 'memory.consented'
  | 'memory.consent_revoked';

export interface Actor {
  readonly kind:
    | 'agentKey'
    | 'client'
    | 'clock'
    | 'operator'
    | 'service'
    | 'browser'
    | 'viewer'
    | 'account'
    | 'consumer';
  readonly id?: string;
}

export interface SessionEventRow {
  /**
   * Events of one application become readable in the order of their ids. The ids have gaps, because all applications
   * share one sequence.
   */
  readonly id: number;
  readonly applicationId: ApplicationId;
  /** Absent: the event belongs to no session. */
  readonly sessionId?: SessionId;
  readonly at: Date;
  readonly type: SessionEventType;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventFilter {
  /** Only events with a greater id. 0: all events. */
  readonly after: number;
  readonly session?: SessionId;
  /** Absent: all types. Empty: none. */
  readonly types?: readonly SessionEventType[];
  /** Only events of this time or later. */
  readonly from?: Date;
  /** Only events before this time. */
  readonly to?: Date;
  readonly limit: number;
}

export interface NamedEvent {
  readonly type: SessionEventType;
  readonly at: Date;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventRows {
  /** Appends an event that is not caused by the change of a row. Does nothing if the session has ended. */
  append(session: SessionId, event: NamedEvent): Promise<void>;
  /**
   * Returns events, oldest first. Events that are committed later have ids above `through`, so a reader that continues
   * from `through` misses none. `full`: the batch was full, and there may be more events.
   */
  read(
    application: ApplicationId,
    filter: EventFilter,
  ): Promise<{ events: readonly SessionEventRow[]; through: number; isFull: boolean }>;
  /** Returns the value of `through` that `read` would return now. */
  newestId(application: ApplicationId): Promise<number>;
  /**
   * Deletes the events of at most `batchSize` sessions that ended before this time, and at most `batchSize` events without a
   * session that are older than this time. Returns the greater of the two numbers.
   */
  forget(endedBefore: Date, batchSize: number): Promise<number>;
}

export interface ApplicationEvents {
  /**
   * Appends an event that belongs to no session. In a transaction it must be the last statement, because readers wait
   * for the lock that it takes.
   */
  append(application: ApplicationId, event: NamedEvent): Promise<void>;
}
