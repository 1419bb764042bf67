// Checkouts. The status changes from `open` only once. The account's balance is locked before the checkout, as in all
// other statements that lock both.
import type { Selectable } from 'kysely';
import { type Db, inTransaction } from '../database.ts';
import type { CheckoutRow, CheckoutRows } from '../rows/checkouts.ts';
import type { Tables } from '../schema.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const checkouts = (db: Db): CheckoutRows => ({
  insert: (row, openMax) =>
    inTransaction(db, async trx => {
      await lockApplication(trx, row.applicationId);
      const query = trx.selectFrom('creditCheckouts').where('applicationId', '=', row.applicationId);
      const openCountQuery = query.where('status', '=', 'open').where('expiresAt', '>', row.createdAt).select(countAll);
      if ((await openCountQuery.executeTakeFirstOrThrow()).count >= openMax) return 'limit_reached';
      await trx.insertInto('creditCheckouts').values(row).execute();
      return 'inserted';
    }),

  get: async id => (await db.selectFrom('creditCheckouts').selectAll().where('id', '=', id).execute()).map(rowOf)[0],

  list: async (application, { limit, before }) => {
    const query = db.selectFrom('creditCheckouts').selectAll().where('applicationId', '=', application);
    const pageQuery = before ? query.where('id', '<', before) : query;
    return (await pageQuery.orderBy('id', 'desc').limit(limit).execute()).map(rowOf);
  },

  end: async (id, status, at) => {
    const update = db.updateTable('creditCheckouts').set({ status, endedAt: at }).where('id', '=', id);
    const openCheckoutUpdate = update.where('status', '=', 'open').where('expiresAt', '>', at);
    return (await openCheckoutUpdate.returningAll().execute()).map(rowOf)[0];
  },

  expire: async (now, batchSize) => {
    const query = db
      .selectFrom('creditCheckouts')
      .select('id')
      .where('status', '=', 'open')
      .where('expiresAt', '<=', now);
    const update = db.updateTable('creditCheckouts').set({ status: 'expired', endedAt: now });
    const expiration = update.where('id', 'in', query.limit(batchSize)).where('status', '=', 'open').returning('id');
    return (await expiration.execute()).length;
  },
});

const rowOf = (row: Selectable<Tables['creditCheckouts']>): CheckoutRow => withoutNulls(row);
