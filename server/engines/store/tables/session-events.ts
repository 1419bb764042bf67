// The events that record changes to a session, each with its actor and details.

import { sql } from 'kysely';
import type { SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { BoxJson, NewSession, SessionEnd, SessionRows } from '../rows/sessions.ts';
import { type EventToRecord, SERVICE_ACTOR } from './events.ts';

/** Longer details are truncated, because they are meant for people. The session's row has the full string. */
const DETAIL_CHARACTERS_MAX = 500;

export const createdEvent = (row: NewSession): EventToRecord => ({
  type: 'session.created',
  at: row.createdAt,
  actor: row.keyId ? { kind: 'agentKey', id: row.keyId } : SERVICE_ACTOR,
  detail: {
    keepAlive: row.keepAlive,
    region: row.region,
    expiresAt: row.expiresAt.toISOString(),
    ...(row.settings.warnings === undefined ? {} : { warnings: row.settings.warnings }),
  },
});

/**
 * The box that was started for a session has the session's id as its name; the box of a warm browser has another name.
 */
export const boxedEvent = (id: SessionId, box: BoxJson, at: Date): EventToRecord => ({
  type: typeof box.id === 'string' && box.id !== id ? 'session.claimed' : 'session.launched',
  at,
  actor: SERVICE_ACTOR,
  detail: {},
});

export const startedEvent = (at: Date): EventToRecord => ({
  type: 'session.started',
  at,
  actor: SERVICE_ACTOR,
  detail: sql`jsonb_build_object('tookMs', round(1000 * extract(epoch from changed.started_at - changed.created_at)))`,
});

export const updatedEvent = (change: Parameters<SessionRows['change']>[2], at: Date): EventToRecord => ({
  type: 'session.updated',
  at,
  actor: change.by ?? SERVICE_ACTOR,
  detail: {
    ...(change.userMetadata ? { userMetadata: change.userMetadata } : {}),
    ...(change.expiresAt ? { expiresAt: change.expiresAt.toISOString() } : {}),
  },
});

/** `clients` is the current number of clients. */
export const connectedEvent = (clients: number, at: Date): EventToRecord => ({
  type: 'client.connected',
  at,
  actor: { kind: 'client' },
  detail: { clients },
});

export const disconnectedEvent = ({ clients, why, releaseAt }: Disconnection, at: Date): EventToRecord => ({
  type: 'client.disconnected',
  at,
  actor: { kind: 'client' },
  detail: { clients, ...(why ? { why } : {}), ...(releaseAt ? { releaseAt: releaseAt.toISOString() } : {}) },
});

interface Disconnection {
  readonly clients: number;
  /** Absent if the client disconnected by itself. */
  readonly why: string | undefined;
  readonly releaseAt?: Date | undefined;
}

export const adoptedEvent = (at: Date): EventToRecord => ({
  type: 'session.adopted',
  at,
  actor: SERVICE_ACTOR,
  detail: {},
});

export function endDecidedEvents(
  { status, reason, detail, by = SERVICE_ACTOR }: SessionEnd,
  at: Date,
): EventToRecord[] {
  const decisionDetail: JsonObject = {
    status,
    reason,
    ...(detail === undefined ? {} : { detail: detail.slice(0, DETAIL_CHARACTERS_MAX) }),
  };
  const decision: EventToRecord = { type: 'session.end_decided', at, actor: by, detail: decisionDetail };
  if (reason !== 'released') return [decision];
  return [{ type: 'session.release_requested', at, actor: by, detail: {} }, decision];
}

/** The actor is the one who decided the end. */
export const endedEvent = (at: Date): EventToRecord => ({
  type: 'session.ended',
  at,
  actor: sql`coalesce(
    (select (actor_kind, actor_id)::session_actor from session_events
      where session_id = changed.id and type = 'session.end_decided' order by id desc limit 1),
    ('service', null)::session_actor)`,
  detail: sql`jsonb_strip_nulls(jsonb_build_object(
    'status', changed.end_status, 'reason', changed.end_reason, 'detail', left(changed.end_detail, ${DETAIL_CHARACTERS_MAX}),
    'seconds', round(extract(epoch from changed.ended_at - changed.created_at), 3), 'proxyBytes', changed.proxy_bytes))`,
});
