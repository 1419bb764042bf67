// What has happened to sessions.

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
  | 'session.adopted'
  | 'session.release_requested'
  | 'session.end_decided'
  | 'session.ended'
  | 'control.taken'
  | 'control.given_back'
  | 'control.expired'
  | 'control.refused'
  | 'devtools.opened'
  | 'devtools.closed'
  | 'live.links_revoked'
  | 'session.events_limited'
  | 'context.restored'
  | 'context.version_skipped'
  | 'context.saved'
  | 'context.saved_partially'
  | 'context.save_failed'
  | 'context.overtaken'
  | 'network.refused'
  | 'navigation.refused'
  | 'proxy.failed';

export interface Actor {
  readonly kind: 'agentKey' | 'client' | 'clock' | 'operator' | 'service' | 'browser' | 'viewer';
  readonly id?: string;
}

export interface SessionEventRow {
  /** Grows in the order in which events of one application can be read; the numbers between belong to others. */
  readonly id: number;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  readonly at: Date;
  readonly type: SessionEventType;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventFilter {
  /** Only events behind this one; 0: all. */
  readonly after: number;
  readonly session?: SessionId;
  readonly types?: readonly SessionEventType[];
  readonly limit: number;
}

export interface NamedEvent {
  readonly type: SessionEventType;
  readonly at: Date;
  readonly actor: Actor;
  readonly detail: JsonObject;
}

export interface EventRows {
  /** For what is no change of the row. Nothing happens where the session has ended. */
  append(session: SessionId, event: NamedEvent): Promise<void>;
  /**
   * Oldest first. Whatever is committed later has a greater id than `through`: who goes on from there misses nothing.
   * `full`: there may be more up to now.
   */
  read(
    application: ApplicationId,
    filter: EventFilter,
  ): Promise<{ events: readonly SessionEventRow[]; through: number; full: boolean }>;
  /** The `through` of now. */
  newest(application: ApplicationId): Promise<number>;
  /** Forgets the events of sessions that ended before this; how many sessions those were, at most `batch`. */
  forget(endedBefore: Date, batch: number): Promise<number>;
}
