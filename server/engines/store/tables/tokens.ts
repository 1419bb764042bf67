// Personal access tokens and developer tokens of accounts.

import { type Db, inTransaction } from '../database.ts';
import type { TokenRow, Tokens } from '../rows/credentials.ts';
import { isLaterUse, isListed, isValid, revocationAnnouncement } from './credentials.ts';
import { countAll, lockAccount } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const tokens = (db: Db): Tokens => ({
  insert: (row, limit) => inTransaction(db, trx => insertToken(trx, row, limit)),

  list: async (account, now, { limit, before, of }) => {
    let query = db
      .selectFrom('tokens')
      .selectAll()
      .where('accountId', '=', account)
      .where(isListed(now))
      .orderBy('id', 'desc')
      .limit(limit);
    if (before) query = query.where('id', '<', before);
    if (of) query = query.where(eb => eb.or([eb('id', '=', of), eb('issuedBy', '=', of)]));
    return (await query.execute()).map(withoutNulls);
  },

  get: async (account, id) => {
    const query = db.selectFrom('tokens').selectAll().where('accountId', '=', account).where('id', '=', id);
    return (await query.execute()).map(withoutNulls)[0];
  },

  byHash: async hash =>
    (await db.selectFrom('tokens').selectAll().where('hash', '=', hash).execute()).map(withoutNulls)[0],

  revoke: async (account, id, now) => {
    const update = db
      .updateTable('tokens')
      .set({ revokedAt: now })
      .where('accountId', '=', account)
      .where('id', '=', id)
      .where(isValid(now))
      .returning(revocationAnnouncement.as('announced'));
    return (await update.execute()).length > 0;
  },

  touch: async (id, at, ip) => {
    const update = db.updateTable('tokens').set({ lastUsedAt: at, lastUsedIp: ip }).where('id', '=', id);
    const firstUseRows = await update.where('lastUsedAt', 'is', null).returning('id').execute();
    if (firstUseRows.length > 0) return true;
    await update.where(isLaterUse(at)).execute();
    return false;
  },
});

/** Runs in the caller's transaction. */
export async function insertToken(trx: Db, row: TokenRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await lockAccount(trx, row.accountId);
  const query = trx.selectFrom('tokens').where('accountId', '=', row.accountId).where(isValid(row.createdAt));
  if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx.insertInto('tokens').values(row).execute();
  return 'inserted';
}
