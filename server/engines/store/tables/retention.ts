// Sessions whose files or rows are due for deletion; the due times are in their rows.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { RetentionRows, SessionDueForDeletion } from '../rows/retention.ts';

export const retention = (db: Db): RetentionRows => ({
  applicationIfKept: async (session, now) => {
    const row = await db
      .selectFrom('sessions')
      .select('applicationId')
      .where('id', '=', session)
      .where(({ or, eb }) => or([eb('forgetDueAt', 'is', null), eb('filesDueAt', '>', now)]))
      .executeTakeFirst();
    return row?.applicationId;
  },

  listFilesDue: (now, batchSize) => listExpired(db, 'filesDueAt', now, batchSize),

  forgetFiles: async (application, session) =>
    db.transaction().execute(async trx => {
      for (const table of ['downloads', 'uploads'] as const)
        await trx.deleteFrom(table).where('applicationId', '=', application).where('sessionId', '=', session).execute();
      const update = trx.updateTable('sessions').set({ filesDueAt: null });
      await update.where('applicationId', '=', application).where('id', '=', session).execute();
    }),

  listRowsDue: (now, batchSize) => listExpired(db, 'forgetDueAt', now, batchSize),

  forget: async (application, session) =>
    db.transaction().execute(async trx => {
      // The idempotency rows that refer to the session are deleted together with the session.
      await trx.deleteFrom('idempotency').where('sessionId', '=', session).execute();
      const deletion = trx.deleteFrom('sessions').where('applicationId', '=', application).where('id', '=', session);
      await deletion.where('endedAt', 'is not', null).execute();
    }),
});

async function listExpired(
  db: Db,
  dueColumn: 'filesDueAt' | 'forgetDueAt',
  now: Date,
  batchSize: number,
): Promise<SessionDueForDeletion[]> {
  const downloads = sql<number>`(select count(*) from downloads
    where session_id = sessions.id and state = 'complete')`.as('downloads');
  const uploads = sql<number>`(select count(*) from uploads where session_id = sessions.id)`.as('uploads');
  let query = db
    .selectFrom('sessions')
    .select(['id', 'applicationId', sql<Date>`ended_at`.as('endedAt'), downloads, uploads])
    .select(
      sql<number>`coalesce((select sum(size) from downloads where session_id = sessions.id), 0)::bigint`.as('bytes'),
    )
    .where(dueColumn, '<=', now)
    .where('endedAt', 'is not', null);
  if (dueColumn === 'forgetDueAt') query = query.where('filesDueAt', 'is', null);
  return query.orderBy(dueColumn).orderBy('id').limit(batchSize).execute();
}
