// Agent keys of an application.
import type { Db } from '../database.ts';
import type { KeyRow, Keys } from '../rows/credentials.ts';
import { announced, isAlive, isLaterUse, isListed } from './credentials.ts';
import { withoutNulls } from './without-nulls.ts';

export const keys = (db: Db): Keys => ({
  insert: (row, limit) => db.transaction().execute(trx => insert(trx, row, limit)),

  list: async (application, now, { limit, before }) => {
    const listed = db
      .selectFrom('keys')
      .selectAll()
      .where('applicationId', '=', application)
      .where(isListed(now))
      .orderBy('id', 'desc')
      .limit(limit);
    return (await (before ? listed.where('id', '<', before) : listed).execute()).map(withoutNulls);
  },

  get: async (application, id) => {
    const one = db.selectFrom('keys').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await one.execute()).map(withoutNulls)[0];
  },

  byHash: async hash =>
    (await db.selectFrom('keys').selectAll().where('hash', '=', hash).execute()).map(withoutNulls)[0],

  change: async (application, id, revision, { name, cidrAllow, expiresAt }) => {
    const changed = db
      .updateTable('keys')
      .set({
        revision: revision + 1,
        ...(name === undefined ? {} : { name }),
        ...(cidrAllow === undefined ? {} : { cidrAllow: [...cidrAllow] }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      })
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('revision', '=', revision)
      .where('revokedAt', 'is', null)
      .returningAll();
    return (await changed.execute()).map(withoutNulls)[0];
  },

  revoke: async (application, id, now) => {
    const revoked = db
      .updateTable('keys')
      .set(eb => ({ revokedAt: now, revision: eb('revision', '+', 1) }))
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where(isAlive(now))
      .returning(announced.as('announced'));
    return (await revoked.execute()).length > 0;
  },

  touch: async (id, at, ip) => {
    const used = db.updateTable('keys').set({ lastUsedAt: at, lastUsedIp: ip });
    await used.where('id', '=', id).where(isLaterUse(at)).execute();
  },
});

/** Locking the application makes two that arrive together count each other. */
async function insert(trx: Db, row: KeyRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await trx.selectFrom('applications').select('id').where('id', '=', row.applicationId).forNoKeyUpdate().execute();
  const { count } = await trx
    .selectFrom('keys')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('applicationId', '=', row.applicationId)
    .where(isAlive(row.createdAt))
    .executeTakeFirstOrThrow();
  if (count >= limit) return 'limit_reached';
  const values = { ...row, scopes: [...row.scopes], cidrAllow: [...row.cidrAllow] };
  await trx.insertInto('keys').values(values).execute();
  return 'inserted';
}
