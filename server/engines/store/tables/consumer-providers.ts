// OpenID providers of applications.
import type { Db } from '../database.ts';
import type { ConsumerProviders } from '../rows/consumer-providers.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const consumerProviders = (db: Db): ConsumerProviders => ({
  get: async (application, id) =>
    (
      await db
        .selectFrom('consumerProviders')
        .selectAll()
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .execute()
    ).map(withoutNulls)[0],

  list: async application =>
    (
      await db
        .selectFrom('consumerProviders')
        .selectAll()
        .where('applicationId', '=', application)
        .orderBy('id')
        .execute()
    ).map(withoutNulls),

  write: async (row, expectedRevision, limit) => {
    const values = { ...row, metadata: JSON.stringify(row.metadata), secretSealed: row.secretSealed ?? null };
    if (expectedRevision > 0) {
      const update = db
        .updateTable('consumerProviders')
        .set(values)
        .where('applicationId', '=', row.applicationId)
        .where('id', '=', row.id)
        .where('revision', '=', expectedRevision);
      return (await update.returning('id').execute()).length > 0 ? 'written' : 'changed';
    }
    await lockApplication(db, row.applicationId);
    const query = db.selectFrom('consumerProviders').where('applicationId', '=', row.applicationId);
    if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
    const insertion = db
      .insertInto('consumerProviders')
      .values(values)
      .onConflict(on => on.doNothing());
    return (await insertion.returning('id').execute()).length > 0 ? 'written' : 'changed';
  },

  remove: async (application, id, revision) => {
    const deletion = db
      .deleteFrom('consumerProviders')
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('revision', '=', revision);
    return (await deletion.returning('id').execute()).length > 0;
  },
});
