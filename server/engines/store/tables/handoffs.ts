// Hand-offs of sessions. A transaction that changes a hand-off locks the fence of its session first (controls.ts).
import { sql } from 'kysely';
import type { ApplicationId, ConsumerId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { HandoffRow, HandoffRows, HandoffStatus } from '../rows/handoffs.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

const CONTROLLED_HANDOFFS_MAX = 100;
const OPEN_STATUSES: readonly HandoffStatus[] = ['requested', 'claimed'];

export const handoffs = (db: Db): HandoffRows => {
  const handoffsQuery = db.selectFrom('handoffs').selectAll();
  const pageUrlQuery = db
    .selectFrom('handoffs')
    .leftJoin('sessions', 'sessions.id', 'handoffs.sessionId')
    .selectAll('handoffs')
    .select('sessions.pageUrl');
  const countOpenBy = async (
    column: 'applicationId' | 'consumerId',
    id: ApplicationId | ConsumerId,
  ): Promise<number> => {
    const query = db
      .selectFrom('handoffs')
      .where(column, '=', id)
      .where('status', 'in', OPEN_STATUSES)
      .where('origin', '<>', 'viewer');
    return (await query.select(countAll).executeTakeFirstOrThrow()).count;
  };
  return {
    get: async (application, id) =>
      firstRow(await handoffsQuery.where('applicationId', '=', application).where('id', '=', id).execute()),

    findOpen: async session =>
      firstRow(await handoffsQuery.where('sessionId', '=', session).where('status', 'in', OPEN_STATUSES).execute()),

    byLease: async hash => firstRow(await handoffsQuery.where('leaseHash', '=', hash).execute()),

    list: async (application, { limit, before, status, session, key }) => {
      let query = pageUrlQuery.where('handoffs.applicationId', '=', application);
      if (before) query = query.where('handoffs.id', '<', before);
      if (status) query = query.where('handoffs.status', '=', status);
      if (session) query = query.where('handoffs.sessionId', '=', session);
      if (key) query = query.where('handoffs.keyId', '=', key);
      return (await query.orderBy('handoffs.id', 'desc').limit(limit).execute()).map(withoutNulls);
    },

    ofSession: async (application, session) => {
      const sessionQuery = handoffsQuery.where('applicationId', '=', application).where('sessionId', '=', session);
      return (await sessionQuery.orderBy('id').execute()).map(withoutNulls);
    },

    listControlledBetween: async (session, from, to) => {
      const controlEnd = sql<Date | null>`coalesce(case when control_until >= claimed_at then control_until end, ended_at)`;
      const controlledQuery = handoffsQuery
        .where('sessionId', '=', session)
        .where('claimedAt', '<=', to)
        .where(({ or, eb }) => or([eb(controlEnd, 'is', null), eb(controlEnd, '>=', from)]));
      return (await controlledQuery.orderBy('id').limit(CONTROLLED_HANDOFFS_MAX).execute()).map(withoutNulls);
    },

    ofConsumer: async (consumer, { limit, before, status }) => {
      let query = pageUrlQuery.where('handoffs.consumerId', '=', consumer);
      if (before) query = query.where('handoffs.id', '<', before);
      if (status) query = query.where('handoffs.status', '=', status);
      return (await query.orderBy('handoffs.id', 'desc').limit(limit).execute()).map(withoutNulls);
    },

    countOpen: application => countOpenBy('applicationId', application),
    countOpenOfConsumer: consumer => countOpenBy('consumerId', consumer),

    listWithoutConsumer: async () => {
      const query = db
        .selectFrom('handoffs')
        .leftJoin('consumers', 'consumers.id', 'handoffs.consumerId')
        .leftJoin('consumerSessions', 'consumerSessions.id', 'handoffs.holderSession')
        .selectAll('handoffs')
        .select('consumers.deletedAt')
        .where('handoffs.status', 'in', OPEN_STATUSES)
        .where('handoffs.consumerId', 'is not', null)
        .where(eb =>
          eb.or([
            eb('consumers.deletedAt', 'is not', null),
            eb.and([eb('handoffs.status', '=', 'claimed'), eb('consumerSessions.revokedAt', 'is not', null)]),
          ]),
        );
      return (await query.execute()).map(({ deletedAt, ...row }) => ({
        row: withoutNulls(row),
        isDeleted: deletedAt !== null,
      }));
    },

    countWrongSecret: async (application, id, limit) => {
      await sql`update handoffs set claim_tries = claim_tries + 1,
          claim_hash = case when claim_tries + 1 >= ${limit} then null else claim_hash end
        where application_id = ${application} and id = ${id} and claim_hash is not null`.execute(db);
    },

    bindBrowser: async (application, id, browser) => {
      const boundRows = await db
        .updateTable('handoffs')
        .set({ claimBrowser: browser })
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .where('claimBrowser', 'is', null)
        .returning('id')
        .execute();
      return boundRows.length > 0;
    },

    insert: async row => {
      const { allowedOrigins, evidence, ...rest } = row;
      await db
        .insertInto('handoffs')
        .values({
          ...rest,
          ...(allowedOrigins ? { allowedOrigins: [...allowedOrigins] } : {}),
          ...(evidence ? { evidence: JSON.stringify(evidence) } : {}),
        })
        .execute();
    },

    change: async (id, { evidence, ...change }) => {
      const changedColumns = { ...change, ...(evidence ? { evidence: JSON.stringify(evidence) } : {}) };
      return firstRow(
        await db.updateTable('handoffs').set(changedColumns).where('id', '=', id).returningAll().execute(),
      );
    },

    endForEndedSessions: async now => {
      const updateResult = await sql<{ id: string }>`
        update handoffs set status = 'session_ended', ended_at = ${now}, lease_expires_at = null, lease_hash = null,
            claim_hash = null
          from sessions
          where sessions.id = handoffs.session_id and handoffs.status in ('requested', 'claimed')
            and sessions.status not in ('PENDING', 'RUNNING')
          returning handoffs.id`.execute(db);
      return updateResult.rows.length;
    },

    forget: async (endedBefore, batchSize) => {
      const { rows } = await sql<{ id: string }>`
        delete from handoffs where id in
          (select id from handoffs where ended_at < ${endedBefore} limit ${batchSize}) returning id`.execute(db);
      return rows.length;
    },
  };
};

const firstRow = (rows: readonly object[]): HandoffRow | undefined => {
  const [row] = rows;
  return row && (withoutNulls(row) as HandoffRow); // The columns have the types that `HandoffRow` declares.
};
