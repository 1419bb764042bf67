// Sessions. Each statement that changes a status contains the condition of the change, so that processes cannot race.
// The same statement writes the event.
import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import type { Clock } from '../../../kit/clock.ts';
import { type ApplicationId, newId, type SessionId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import {
  type LastPageRow,
  SEARCHED_SESSIONS_MAX,
  type SessionFilter,
  type SessionRow,
  type SessionRows,
  type SessionStatus,
} from '../rows/sessions.ts';
import type { Tables } from '../schema.ts';
import { idNear } from './id-near.ts';
import { hasMetadataTerm, hasWord } from './metadata-term.ts';
import { countOf, place } from './place.ts';
import type { Recorder } from './recorder.ts';
import * as event from './session-events.ts';
import { sessionRow } from './session-row.ts';

type SessionExpressions = ExpressionBuilder<Tables, 'sessions'>;

const OPEN_STATUSES: readonly SessionStatus[] = ['PENDING', 'RUNNING'];
const isOpen = (eb: SessionExpressions) => eb('status', 'in', OPEN_STATUSES);
const isEndUndecided = (eb: SessionExpressions) => eb.and([isOpen(eb), eb('endStatus', 'is', null)]);

export const sessions = (db: Db, clock: Clock, recorder: Recorder): SessionRows => ({
  place: async (row, options) => {
    const outcome = await place(db, row, options);
    if ('placed' in outcome) recorder.announce(outcome.placed);
    return outcome;
  },

  countOf: (application, createdAfter, now) => countOf(db, application, createdAfter, now),

  recordResponse: async (id, delivered) => {
    const update = db.updateTable('sessions').set({ answer: delivered ? null : 'lost' });
    await update.where('id', '=', id).where('answer', '=', 'owed').execute();
  },

  claimLostResponse: async (key, digest, since) => {
    const query = db
      .selectFrom('sessions')
      .select('id')
      .where('keyId', '=', key)
      .where('createDigest', '=', digest)
      .where('answer', '=', 'lost')
      .where('createdAt', '>', since)
      .where(isEndUndecided)
      .orderBy('id')
      .limit(1)
      .forUpdate()
      .skipLocked();
    const update = db.updateTable('sessions').set({ answer: 'owed' }).where('id', '=', query).returningAll();
    return (await update.execute()).map(sessionRow)[0];
  },

  markResponsesLost: async host => {
    const update = db.updateTable('sessions').set({ answer: 'lost' });
    return (await update.where('hostId', '=', host).where('answer', '=', 'owed').returning('id').execute()).length;
  },

  get: async (application, id) => {
    const query = db.selectFrom('sessions').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await query.execute()).map(sessionRow)[0];
  },

  byId: async id => (await db.selectFrom('sessions').selectAll().where('id', '=', id).execute()).map(sessionRow)[0],

  list: async (application, filter) =>
    (await listQuery(db, application, filter, clock.now()).execute()).map(sessionRow),

  lastSearched: async (application, filter) => {
    const ids = selectInRange(db, application, filter).select('id').orderBy('id', 'desc');
    return (
      await ids
        .offset(SEARCHED_SESSIONS_MAX - 1)
        .limit(1)
        .execute()
    )[0]?.id;
  },

  setBox: async (id, box, now) => {
    const update = db.updateTable('sessions').set({ box: JSON.stringify(box), updatedAt: now });
    await recorder.write(update.where('id', '=', id).where(isOpen).returningAll(), event.boxedEvent(id, box, now));
  },

  markRunning: async (id, startedAt, box) => {
    const update = db
      .updateTable('sessions')
      .set({ status: 'RUNNING', startedAt, updatedAt: startedAt, ...(box ? { box: JSON.stringify(box) } : {}) })
      .where('id', '=', id)
      .where('status', '=', 'PENDING')
      .where(isEndUndecided)
      .returningAll();
    const events = [...(box ? [event.boxedEvent(id, box, startedAt)] : []), event.startedEvent(startedAt)];
    return (await recorder.write(update, ...events))[0];
  },

  change: async (application, id, change, now) => {
    const { userMetadata, expiresAt } = change;
    const update = db
      .updateTable('sessions')
      .set({
        updatedAt: now,
        ...(userMetadata === undefined ? {} : { userMetadata: JSON.stringify(userMetadata) }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      })
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('status', '=', 'RUNNING')
      .where(isEndUndecided)
      .returningAll();
    return (await recorder.write(update, event.updatedEvent(change, now)))[0];
  },

  decideEnd: async (id, end, now) => {
    const update = db
      .updateTable('sessions')
      .set({
        endStatus: end.status,
        endReason: end.reason,
        endDetail: end.detail ?? null,
        endDecidedAt: now,
        updatedAt: now,
      })
      .where('id', '=', id)
      .where(isEndUndecided)
      .returningAll();
    const [decidedRow] = await recorder.write(update, ...event.endDecidedEvents(end, now));
    return decidedRow ?? findOpen(db, id);
  },

  finish: async (id, endedAt, proxyBytes, retention) => {
    const update = db
      .updateTable('sessions')
      .set(eb => ({
        status: eb.ref('endStatus').$notNull(),
        endedAt,
        updatedAt: endedAt,
        // Bytes may have been counted after the end was decided, so the greater number is kept.
        proxyBytes: sql<number>`greatest(proxy_bytes, ${proxyBytes}::bigint)`,
        box: null,
        attached: false,
        connectBy: null,
        releaseAt: null,
        ...retention,
      }))
      .where('id', '=', id)
      .where(isOpen)
      .where('endStatus', 'is not', null)
      .where(settleCredit(id, endedAt))
      .returningAll();
    const [finishedRow] = await recorder.write(update, event.endedEvent(endedAt));
    return finishedRow ?? findEnded(db, id);
  },

  setTraffic: async (id, { proxyBytes, egressBytes }) => {
    const update = db.updateTable('sessions').set({
      proxyBytes: sql<number>`greatest(proxy_bytes, ${proxyBytes}::bigint)`,
      egressBytes: sql<number>`greatest(egress_bytes, ${egressBytes}::bigint)`,
    });
    await update.where('id', '=', id).where(isOpen).execute();
  },

  setLastPages: async pages => {
    const values = (field: keyof LastPageRow) => pages.map(page => page[field]);
    await sql`
      update sessions set page_url = page.url, page_title = page.title
        from unnest(${values('id')}::uuid[], ${values('pageUrl')}::text[], ${values('pageTitle')}::text[])
          as page (id, url, title)
        where sessions.id = page.id and sessions.status in ('PENDING', 'RUNNING')`.execute(db);
  },

  recordClientConnected: async (id, now, clients = 1) => {
    const update = db.updateTable('sessions').set({ attached: true, connectBy: null, releaseAt: null, updatedAt: now });
    await recorder.write(update.where('id', '=', id).where(isOpen).returningAll(), event.connectedEvent(clients, now));
  },

  recordClientDisconnected: async (id, now, clients, why) => {
    // Sets the same columns as `recordClientConnected`, because the change by that method may not have been written.
    const update = db.updateTable('sessions').set({ attached: true, connectBy: null, releaseAt: null, updatedAt: now });
    await recorder.write(
      update.where('id', '=', id).where(isOpen).returningAll(),
      event.disconnectedEvent({ clients, why }, now),
    );
  },

  recordLastClientDisconnected: async (id, releaseAt, now, why) => {
    const update = db
      .updateTable('sessions')
      .set({ attached: false, connectBy: null, releaseAt: releaseAt ?? null, updatedAt: now });
    await recorder.write(
      update.where('id', '=', id).where(isOpen).returningAll(),
      event.disconnectedEvent({ clients: 0, why, releaseAt }, now),
    );
  },

  due: async (host, now, batchSize) => {
    const query = db
      .selectFrom('sessions')
      .selectAll()
      .where('hostId', '=', host)
      .where(isOpen)
      .where(eb => eb.or([eb('dueAt', '<=', now), eb('endStatus', 'is not', null)]))
      .orderBy('dueAt')
      .orderBy('id')
      .limit(batchSize);
    return (await query.execute()).map(sessionRow);
  },

  ofHost: async host => {
    const query = db.selectFrom('sessions').selectAll().where('hostId', '=', host).where(isOpen).orderBy('id');
    return (await query.execute()).map(sessionRow);
  },

  // greatest() ignores nulls. A timer that is not set therefore stays unset only because of the conditions in `case`.
  resumeTimers: async (host, notBefore) => {
    const atLeast = (column: string) => sql<Date>`greatest(${sql.ref(column)}, ${notBefore}::timestamptz)`;
    const update = db
      .updateTable('sessions')
      .set({
        connectBy: sql<Date | null>`case when connect_by is not null then ${atLeast('connectBy')} end`,
        releaseAt: sql<Date | null>`
          case when release_at is not null or (attached and not keep_alive) then ${atLeast('releaseAt')} end`,
        attached: false,
      })
      .where('hostId', '=', host)
      .where(isOpen)
      .returningAll();
    await recorder.write(update, event.adoptedEvent(clock.now()));
  },

  countByStatus: async host => {
    const countQuery = db
      .selectFrom('sessions')
      .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
      .where('hostId', '=', host)
      .groupBy('status');
    return Object.fromEntries((await countQuery.execute()).map(({ status, count }) => [status, count]));
  },

  usage: async application => {
    const { seconds, proxyBytes } = await db
      .selectFrom('sessions')
      .select([
        sql<number>`coalesce(sum(extract(epoch from
          coalesce(ended_at, ${clock.now()}::timestamptz) - started_at)), 0)::float8`.as('seconds'),
        sql<number>`coalesce(sum(proxy_bytes), 0)::float8`.as('proxyBytes'),
      ])
      .where('applicationId', '=', application)
      .executeTakeFirstOrThrow();
    return { browserMinutes: seconds / 60, proxyBytes };
  },
});

function listQuery(db: Db, application: ApplicationId, filter: SessionFilter, now: Date) {
  const { statuses, endReasons, keyId, metadata = [], words = [], atLeastSeconds, atMostSeconds, limit } = filter;
  const seconds = sql<number>`extract(epoch from coalesce(ended_at, ${now}::timestamptz) - created_at)`;
  const rangeQuery = selectInRange(db, application, filter).selectAll();
  const searchedQuery = words.length === 0 ? rangeQuery : rangeQuery.orderBy('id', 'desc').limit(SEARCHED_SESSIONS_MAX);
  let query = db.selectFrom(searchedQuery.as('sessions')).selectAll();
  if (statuses) query = query.where(eb => eb('status', '=', eb.fn.any(eb.val([...statuses]))));
  if (endReasons) query = query.where(eb => eb('endReason', '=', eb.fn.any(eb.val([...endReasons]))));
  if (keyId) query = query.where('keyId', '=', keyId);
  if (atLeastSeconds !== undefined) query = query.where(seconds, '>=', atLeastSeconds);
  if (atMostSeconds !== undefined) query = query.where(seconds, '<=', atMostSeconds);
  for (const term of metadata) query = query.where(hasMetadataTerm(term));
  for (const word of words) query = query.where(hasWord(word));
  return query.orderBy('id', 'desc').limit(limit);
}

/** Callers order these rows by id. The index on application and id returns them in that order. */
function selectInRange(db: Db, application: ApplicationId, { before, createdAfter, createdBefore }: SessionFilter) {
  let query = db.selectFrom('sessions').where('applicationId', '=', application);
  if (before) query = query.where('id', '<', before);
  if (createdBefore)
    query = query.where('id', '<', idNear<SessionId>(createdBefore, 1)).where('createdAt', '<', createdBefore);
  if (createdAfter)
    query = query.where('id', '>=', idNear<SessionId>(createdAfter, -1)).where('createdAt', '>=', createdAfter);
  return query;
}

async function findOpen(db: Db, id: SessionRow['id']): Promise<SessionRow | undefined> {
  return (await db.selectFrom('sessions').selectAll().where('id', '=', id).where(isOpen).execute()).map(sessionRow)[0];
}

/**
 * A condition that, as a side effect, settles the credit that the session holds. This happens before the row is locked,
 * and only if this statement sees that the row is to be ended. If a concurrent statement has already ended the session
 * and settled the credit, this statement finds nothing to settle and no open row.
 */
const settleCredit = (id: SessionId, endedAt: Date): RawBuilder<boolean> => sql`
  case when sessions.id = ${id}::uuid and status in ('PENDING', 'RUNNING') and end_status is not null
    then settle_session(sessions.id, ${endedAt}::timestamptz, ${newId(endedAt)}::uuid) else false end`;

/**
 * Called after an update matched no row. Returns the row if the session has ended. Returns undefined if the session is
 * open or does not exist.
 */
async function findEnded(db: Db, id: SessionRow['id']): Promise<SessionRow | undefined> {
  const query = db.selectFrom('sessions').selectAll().where('id', '=', id).where('status', 'not in', OPEN_STATUSES);
  return (await query.execute()).map(sessionRow)[0];
}
