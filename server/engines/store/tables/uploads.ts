// Uploads of sessions: one row for each file name.
import type { Db } from '../database.ts';
import type { UploadRows } from '../rows/uploads.ts';

export const uploads = (db: Db): UploadRows => ({
  put: async row =>
    db.transaction().execute(async trx => {
      const runningSessions = await trx
        .selectFrom('sessions')
        .select('id')
        .where('applicationId', '=', row.applicationId)
        .where('id', '=', row.sessionId)
        .where('status', '=', 'RUNNING')
        .where('endStatus', 'is', null)
        .forShare()
        .execute();
      if (runningSessions.length === 0) return undefined;
      const { id, size, checksum, createdAt } = row;
      const insertion = trx
        .insertInto('uploads')
        .values(row)
        .onConflict(conflict => conflict.columns(['sessionId', 'name']).doUpdateSet({ id, size, checksum, createdAt }))
        .returningAll();
      return insertion.executeTakeFirst();
    }),

  ofSession: async (application, session) =>
    db
      .selectFrom('uploads')
      .selectAll()
      .where('applicationId', '=', application)
      .where('sessionId', '=', session)
      .orderBy('createdAt')
      .orderBy('id')
      .execute(),
});
