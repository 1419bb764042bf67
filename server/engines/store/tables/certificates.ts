// Certificate authorities of applications. They are small enough to be stored whole in their rows.
import { sql } from 'kysely';
import type { CertificateId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { CertificateRow, CertificateRows } from '../rows/certificates.ts';
import { countAll, lockApplication } from './limited-insert.ts';

/** All columns except `ders`, which contains the certificates themselves. */
const SHOWN_COLUMNS = ['id', 'applicationId', 'subjects', 'fingerprints', 'notAfter', 'createdAt'] as const;

export const certificates = (db: Db): CertificateRows => ({
  insert: (row, ders, limit) => db.transaction().execute(trx => insert(trx, row, ders, limit)),

  list: application =>
    db
      .selectFrom('certificates')
      .select(SHOWN_COLUMNS)
      .where('applicationId', '=', application)
      .orderBy('id', 'desc')
      .execute(),

  get: (application, id) =>
    db
      .selectFrom('certificates')
      .select(SHOWN_COLUMNS)
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .executeTakeFirst(),

  ders: async (application, ids) => {
    const foundRows = await db
      .selectFrom('certificates')
      .select(['id', 'ders'])
      .where('applicationId', '=', application)
      .where(isOneOf(ids))
      .execute();
    return new Map(foundRows.map(({ id, ders }) => [id, ders]));
  },

  remove: async (application, id) => {
    const deletion = db.deleteFrom('certificates').where('applicationId', '=', application).where('id', '=', id);
    return (await deletion.returning('id').execute()).length > 0;
  },
});

const isOneOf = (ids: readonly CertificateId[]) => sql<boolean>`id = any(${[...ids]}::uuid[])`;

async function insert(
  trx: Db,
  row: CertificateRow,
  ders: readonly Buffer[],
  limit: number,
): Promise<'inserted' | 'limit_reached'> {
  await lockApplication(trx, row.applicationId);
  const query = trx.selectFrom('certificates').where('applicationId', '=', row.applicationId).select(countAll);
  if ((await query.executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx
    .insertInto('certificates')
    .values({ ...row, ders })
    .execute();
  return 'inserted';
}
