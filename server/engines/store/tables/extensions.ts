// Extensions of applications and their stored files. A file's row is written before the file and deleted after it, so
// every stored file has a row.
import { sql } from 'kysely';
import type { ApplicationId, ExtensionId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { ExtensionRow, ExtensionRows } from '../rows/extensions.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const extensions = (db: Db): ExtensionRows => ({
  expectFile: async (applicationId, checksum, now) => {
    await db
      .insertInto('extensionFiles')
      .values({ applicationId, checksum, usedAt: now })
      .onConflict(conflict => conflict.columns(['applicationId', 'checksum']).doUpdateSet({ usedAt: now }))
      .execute();
  },

  insert: (row, limit) => db.transaction().execute(trx => insert(trx, row, limit)),

  get: async (application, id) => {
    const query = db.selectFrom('extensions').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await query.execute()).map(withoutNulls)[0];
  },

  use: (application, ids, now) => db.transaction().execute(trx => use(trx, application, ids, now)),

  remove: async (application, id) => {
    const deletion = db.deleteFrom('extensions').where('applicationId', '=', application).where('id', '=', id);
    return (await deletion.returning('id').execute()).length > 0;
  },

  forget: async (usedBefore, batchSize) => {
    const query = db.selectFrom('extensions').select('id').where('usedAt', '<', usedBefore).limit(batchSize);
    const deletion = db.deleteFrom('extensions').where('id', 'in', query).where('usedAt', '<', usedBefore);
    return (await deletion.returning('id').execute()).length;
  },

  dropFile: (usedBefore, remove) => db.transaction().execute(trx => dropFile(trx, usedBefore, remove)),
});

async function insert(trx: Db, row: ExtensionRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await lockApplication(trx, row.applicationId);
  const query = trx.selectFrom('extensions').where('applicationId', '=', row.applicationId).select(countAll);
  if ((await query.executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx.insertInto('extensions').values(row).execute();
  return 'inserted';
}

async function use(
  trx: Db,
  application: ApplicationId,
  ids: readonly ExtensionId[],
  now: Date,
): Promise<ExtensionRow[]> {
  const usedExtensions = await trx
    .updateTable('extensions')
    .set({ usedAt: now })
    .where('applicationId', '=', application)
    .where(sql<boolean>`id = any(${[...ids]}::uuid[])`)
    .returningAll()
    .execute();
  await trx
    .updateTable('extensionFiles')
    .set({ usedAt: now })
    .where('applicationId', '=', application)
    .where(sql<boolean>`checksum = any(${usedExtensions.map(({ checksum }) => checksum)}::text[])`)
    .execute();
  return usedExtensions.map(withoutNulls);
}

/**
 * Removes a file. Its row is locked during the removal, so that a concurrent upload of the same file waits and then
 * stores the file again.
 */
async function dropFile(
  trx: Db,
  usedBefore: Date,
  remove: (application: ApplicationId, checksum: string) => Promise<void>,
): Promise<boolean> {
  const file = await trx
    .selectFrom('extensionFiles')
    .selectAll()
    .where('usedAt', '<', usedBefore)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('extensions')
            .select('extensions.id')
            .whereRef('extensions.applicationId', '=', 'extensionFiles.applicationId')
            .whereRef('extensions.checksum', '=', 'extensionFiles.checksum'),
        ),
      ),
    )
    .limit(1)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
  if (!file) return false;
  await remove(file.applicationId, file.checksum);
  await trx
    .deleteFrom('extensionFiles')
    .where('applicationId', '=', file.applicationId)
    .where('checksum', '=', file.checksum)
    .execute();
  return true;
}
