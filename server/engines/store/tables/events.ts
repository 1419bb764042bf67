// Events of sessions and of applications: appended together with the change that they report, and read oldest first. An
// id is taken from a sequence before its transaction commits, so a greater id may become visible before a smaller one.
// Each writer therefore holds the application's advisory lock, shared, from before it takes its id until it commits. A
// reader notes the last assigned id, waits for that lock once, and reads up to the noted id: by then, all writers with
// smaller ids have committed. Readers therefore wait a few milliseconds for writers, and writers never wait for each
// other. Writers take this lock last, so no holder of it waits for another lock.

import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type {
  Actor,
  ApplicationEvents,
  EventFilter,
  EventRows,
  SessionEventRow,
  SessionEventType,
} from '../rows/events.ts';
import type { SessionEventsTable } from '../schema.ts';

/**
 * The maximum number of events per session, so that a client that connects and disconnects in a loop cannot fill the
 * disk. The end event is always written.
 */
const EVENTS_PER_SESSION_MAX = 1000;
export const DETAIL_BYTES_MAX = 2048;
/** The advisory locks are identified by two numbers: this one, and a hash of the application id. */
export const LOCK_SPACE = 1_655_271_028;

export const SERVICE_ACTOR: Actor = { kind: 'service' };

export interface EventToRecord {
  readonly type: SessionEventType;
  readonly at: Date;
  readonly actor: Actor | RawBuilder<unknown>;
  /** If this is SQL, it may refer to columns of the changed row. */
  readonly detail: JsonObject | RawBuilder<unknown>;
}

/**
 * Returns an expression that records an event. A statement selects it as a column from the changed session rows, which
 * the statement must name `changed`.
 */
export const recordExpression = ({ type, at, actor, detail }: EventToRecord): RawBuilder<number | null> => {
  const [kind, idExpression] =
    'kind' in actor
      ? [sql`${actor.kind}::text`, sql`${actor.id ?? null}::text`]
      : [sql`(${actor}).actor_kind`, sql`(${actor}).actor_id`];
  return sql`record_session_event(
    changed.id, changed.application_id, ${at}::timestamptz, ${type}::text, ${kind}, ${idExpression},
    ${isRaw(detail) ? detail : sql`${JSON.stringify(detail)}::jsonb`},
    ${EVENTS_PER_SESSION_MAX}::integer, ${DETAIL_BYTES_MAX}::integer, ${LOCK_SPACE}::integer)`;
};

/**
 * Returns an expression that records an application event. A statement selects it as a column from the changed rows.
 */
export const applicationEventExpression = (
  application: RawBuilder<unknown>,
  { type, at, actor, detail }: ApplicationEventToRecord,
) =>
  sql<number>`record_application_event(${application}, ${at}, ${type}, ${actor.kind}::text, ${actor.id}::text, ${detail},
    ${DETAIL_BYTES_MAX}::integer, ${LOCK_SPACE}::integer)`;

interface ApplicationEventToRecord {
  readonly type: RawBuilder<unknown>;
  readonly at: RawBuilder<unknown>;
  readonly actor: { readonly kind: Actor['kind']; readonly id: RawBuilder<unknown> };
  readonly detail: RawBuilder<unknown>;
}

export const applicationEvents = (db: Db, announcer: Announcer): ApplicationEvents => ({
  append: async (application, { type, at, actor, detail }) => {
    const eventExpressions = {
      ...{ type: sql`${type}::text`, at: sql`${at}::timestamptz`, detail: sql`${JSON.stringify(detail)}::jsonb` },
      actor: { kind: actor.kind, id: sql`${actor.id ?? null}` },
    };
    await sql`select ${applicationEventExpression(sql`${application}::uuid`, eventExpressions)}`.execute(db);
    // The notification is sent before the commit. A reader that is woken early waits for the lock of this transaction.
    announcer.announceEvents([{ applicationId: application }]);
  },
});

const isRaw = (detail: EventToRecord['detail']): detail is RawBuilder<unknown> =>
  'toOperationNode' in detail && typeof detail.toOperationNode === 'function';

export const events = (db: Db, announcer: Announcer): EventRows => ({
  append: async (session, event) => {
    // The row is locked, so that the events of one session are ordered.
    const { rows } = await sql<{ id: SessionId; applicationId: ApplicationId }>`
      with changed as (
        select id, application_id from sessions where id = ${session} and status in ('PENDING', 'RUNNING')
          for no key update
      )
      select changed.id, changed.application_id, ${recordExpression(event)} from changed`.execute(db);
    announcer.announceEvents(rows);
  },

  read: async (application, filter) => {
    const lastId = await lastAssignedId(db);
    if (lastId <= filter.after) return { events: [], through: filter.after, isFull: false };
    await waitForOtherWriters(db, application);
    const rows = (await listEvents(db, application, filter, lastId).execute()).map(eventRow);
    const lastRow = rows.at(-1);
    const isFull = rows.length === filter.limit && lastRow !== undefined;
    return { events: rows, through: isFull ? lastRow.id : lastId, isFull };
  },

  newestId: async application => {
    const lastId = await lastAssignedId(db);
    await waitForOtherWriters(db, application);
    return lastId;
  },

  forget: async (endedBefore, batchSize) => {
    const query = db
      .selectFrom('sessionEvents')
      .select('sessionId')
      .where('type', '=', 'session.ended')
      .where('at', '<', endedBefore)
      .limit(batchSize);
    const deletedSessions = await db
      .with('gone', creator =>
        creator.deleteFrom('sessionEvents').where('sessionId', 'in', query).returning('sessionId'),
      )
      .selectFrom('gone')
      .select(({ fn }) => fn.count<number>('sessionId').distinct().as('sessions'))
      .executeTakeFirstOrThrow();
    const oldEventsQuery = db
      .selectFrom('sessionEvents')
      .select('id')
      .where('sessionId', 'is', null)
      .where('at', '<', endedBefore);
    const deletedEvents = await db
      .deleteFrom('sessionEvents')
      .where('id', 'in', oldEventsQuery.limit(batchSize))
      .returning('id')
      .execute();
    return Math.max(deletedSessions.sessions, deletedEvents.length);
  },
});

async function lastAssignedId(db: Db): Promise<number> {
  const { rows } = await sql<{ last: number }>`
    select case when is_called then last_value else 0 end as last from session_events_id_seq`.execute(db);
  return rows[0]?.last ?? 0;
}

/**
 * Waits for the writers that hold the lock of the application. This is a separate statement, because only the next
 * statement sees the changes that were committed during the wait.
 */
async function waitForOtherWriters(db: Db, application: ApplicationId): Promise<void> {
  await sql`select pg_advisory_xact_lock(${LOCK_SPACE}::integer, hashtext(${application}::text))`.execute(db);
}

function listEvents(
  db: Db,
  application: ApplicationId,
  { after, session, types, from, to, limit }: EventFilter,
  lastId: number,
) {
  let query = db
    .selectFrom('sessionEvents')
    .selectAll()
    .where('applicationId', '=', application)
    .where('id', '>', after)
    .where('id', '<=', lastId);
  if (session) query = query.where('sessionId', '=', session);
  if (types) query = query.where(eb => eb('type', '=', eb.fn.any(eb.val([...types]))));
  if (from) query = query.where('at', '>=', from);
  if (to) query = query.where('at', '<', to);
  return query.orderBy('id').limit(limit);
}

const eventRow = ({ actorKind, actorId, sessionId, ...row }: Selectable<SessionEventsTable>): SessionEventRow => ({
  ...row,
  ...(sessionId === null ? {} : { sessionId }),
  actor: actorId === null ? { kind: actorKind } : { kind: actorKind, id: actorId },
});
