// Certificate authorities of applications. Small enough to be kept whole in their rows.
import { sql } from 'kysely';
import type { ApplicationId, CertificateId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { CertificateRow, CertificateRows } from '../rows/certificates.ts';

/** All but the certificates themselves. */
const SHOWN = ['id', 'applicationId', 'subjects', 'fingerprints', 'notAfter', 'createdAt'] as const;

export const certificates = (db: Db): CertificateRows => ({
  insert: (row, ders, limit) => db.transaction().execute(trx => insert(trx, row, ders, limit)),

  list: application =>
    db
      .selectFrom('certificates')
      .select(SHOWN)
      .where('applicationId', '=', application)
      .orderBy('id', 'desc')
      .execute(),

  get: (application, id) =>
    db
      .selectFrom('certificates')
      .select(SHOWN)
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .executeTakeFirst(),

  ders: async (application, ids) => {
    const found = await db
      .selectFrom('certificates')
      .select(['id', 'ders'])
      .where('applicationId', '=', application)
      .where(isOneOf(ids))
      .execute();
    return new Map(found.map(({ id, ders }) => [id, ders]));
  },

  remove: async (application, id) => {
    const removed = db.deleteFrom('certificates').where('applicationId', '=', application).where('id', '=', id);
    return (await removed.returning('id').execute()).length > 0;
  },
});

const isOneOf = (ids: readonly CertificateId[]) => sql<boolean>`id = any(${[...ids]}::uuid[])`;

/** Locking the application makes two that arrive together count each other. */
async function insert(
  trx: Db,
  row: CertificateRow,
  ders: readonly Buffer[],
  limit: number,
): Promise<'inserted' | 'limit_reached'> {
  await trx.selectFrom('applications').select('id').where('id', '=', row.applicationId).forNoKeyUpdate().execute();
  if ((await countOf(trx, row.applicationId)) >= limit) return 'limit_reached';
  const { subjects, fingerprints, ...rest } = row;
  const values = { ...rest, subjects: [...subjects], fingerprints: [...fingerprints], ders: [...ders] };
  await trx.insertInto('certificates').values(values).execute();
  return 'inserted';
}

async function countOf(db: Db, application: ApplicationId): Promise<number> {
  const { count } = await db
    .selectFrom('certificates')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('applicationId', '=', application)
    .executeTakeFirstOrThrow();
  return count;
}
